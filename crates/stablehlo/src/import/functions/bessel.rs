//! The modified Bessel function of the first kind and first order, times `exp(-|x|)`.

use tilewright_ir::ElementType;

use super::expr::Expr;

/// Coefficients of Chebyshev polynomials for `|x| <= 8`, the highest first. Singles take the last
/// 17 of them.
#[rustfmt::skip]
const NEAR: [f64; 29] = [
    2.777_914_112_761_046_4e-18, -2.111_421_214_358_166e-17, 1.553_631_957_736_200_5e-16,
    -1.105_596_947_735_386_2e-15, 7.600_684_294_735_408e-15, -5.042_185_504_727_912e-14,
    3.223_793_365_945_575e-13, -1.983_974_397_764_943_6e-12, 1.173_618_629_889_090_1e-11,
    -6.663_489_723_502_027e-11, 3.625_590_281_552_117e-10, -1.887_249_751_722_829_4e-9,
    9.381_537_386_495_773e-9, -4.445_059_128_796_328e-8, 2.003_294_753_552_135_3e-7,
    -8.568_720_264_695_455e-7, 3.470_251_308_137_678_5e-6, -1.327_316_365_603_943_6e-5,
    4.781_565_107_550_054e-5, -1.617_608_158_258_967_4e-4, 5.122_859_561_685_758e-4,
    -1.513_572_450_631_253_2e-3, 4.156_422_944_312_888e-3, -0.010_564_084_894_626_197,
    0.024_726_449_030_626_516, -0.052_945_981_208_094_99, 0.102_643_658_689_847_1,
    -0.176_416_518_357_834_06, 0.252_587_186_443_633_65,
];

/// The same for `|x| > 8`. Singles take the last 7 of them.
#[rustfmt::skip]
const FAR: [f64; 25] = [
    7.517_296_310_842_105e-18, 4.414_348_323_071_708e-18, -4.650_305_368_489_358_6e-17,
    -3.209_525_921_993_424e-17, 2.962_628_997_645_95e-16, 3.308_202_310_920_928_5e-16,
    -1.880_354_775_510_782_5e-15, -3.814_403_072_437_007_5e-15, 1.042_027_698_412_880_2e-14,
    4.272_440_016_711_951e-14, -2.101_541_842_772_664_3e-14, -4.083_551_111_092_197_4e-13,
    -7.198_551_776_245_908e-13, 2.035_628_544_147_089_6e-12, 1.412_580_743_661_378_2e-11,
    3.252_603_583_015_488_4e-11, -1.897_495_812_350_541_3e-11, -5.589_743_462_196_584e-10,
    -3.835_380_385_964_237e-9, -2.631_468_846_889_519_6e-8, -2.512_236_237_870_209e-7,
    -3.882_564_808_877_691e-6, -1.105_889_387_626_237_1e-4, -9.761_097_491_361_469e-3,
    0.778_576_235_018_280_1,
];

/// With `z = |x|`, the sign of `x` times `z A(z / 2 - 2)` up to 8 and `B(32 / z - 2) / sqrt(z)`
/// beyond.
pub(super) fn bessel_i1e(x: Expr<'_>) -> Expr<'_> {
    let last = |all: &'static [f64], count: usize| match x.ty() {
        ElementType::F64 => all,
        _ => all.get(all.len().saturating_sub(count)..).unwrap_or(all),
    };
    let z = x.abs();
    let near = z * chebyshev(z * 0.5 - 2.0, last(&NEAR, 17));
    let far = chebyshev(32.0 / z - 2.0, last(&FAR, 7)) / z.sqrt();
    x.sign() * z.is_at_most(8.0).select(near, far)
}

/// Half of the difference of the last sums of Clenshaw's recurrence.
fn chebyshev<'f>(x: Expr<'f>, coefficients: &[f64]) -> Expr<'f> {
    let zero = x.number(0.0);
    let (mut sum, mut before, mut second) = (zero, zero, zero);
    for &coefficient in coefficients {
        (second, before) = (before, sum);
        sum = x * before - second + coefficient;
    }
    (sum - second) * 0.5
}
