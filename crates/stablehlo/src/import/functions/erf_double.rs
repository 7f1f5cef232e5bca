//! `erf` and its kin in double precision.

use super::approximate::{polynomial, with_infinite_ends};
use super::expr::Expr;

/// Coefficients of the inverse of `erf` where `w = -log(1 - x^2)` is less than 6.25.
#[rustfmt::skip]
const NEAR: [f64; 23] = [
    -3.644_412_064_017_82e-21, -1.685_059_138_182_016_6e-19, 1.285_848_071_525_64e-18,
    1.115_787_767_802_518_1e-17, -1.333_171_662_854_621e-16, 2.097_276_787_596_856_2e-17,
    6.637_638_134_358_324e-15, -4.054_566_272_975_207e-14, -8.151_934_197_605_472e-14,
    2.633_509_315_308_232_3e-12, -1.297_513_325_345_353_2e-11, -5.415_412_054_294_628e-11,
    1.051_212_273_321_532_3e-9, -4.112_633_980_346_984e-9, -2.907_036_995_788_200_5e-8,
    4.234_787_782_793_240_4e-7, -1.365_469_200_083_467_9e-6, -1.388_252_336_278_646_9e-5,
    1.867_342_080_340_571_4e-4, -7.407_025_341_662_67e-4, -6.033_670_871_430_149e-3,
    0.240_158_182_425_589_62, 1.653_654_562_683_102_7,
];

/// The same where `w` is less than 16.
#[rustfmt::skip]
const FAR: [f64; 19] = [
    2.213_737_692_177_578_7e-9, 9.075_656_193_888_539e-8, -2.751_740_629_706_454_5e-7,
    1.823_962_921_438_922_8e-8, 1.502_740_396_890_982_8e-6, -4.013_867_526_981_546e-6,
    2.923_444_908_995_544_6e-6, 1.247_530_448_167_177_9e-5, -4.731_822_900_905_573_4e-5,
    6.828_485_145_957_318e-5, 2.403_111_038_709_789_4e-5, -3.550_375_203_628_475e-4,
    9.532_893_797_373_805e-4, -1.688_275_556_023_504_7e-3, 2.491_442_096_107_851e-3,
    -3.751_208_507_569_241e-3, 5.370_914_553_590_064e-3, 1.005_258_967_694_159_2,
    3.083_885_610_492_220_8,
];

/// The same for larger ones.
#[rustfmt::skip]
const FARTHER: [f64; 17] = [
    -2.710_992_061_643_857_3e-11, -2.555_641_816_996_525e-10, 1.507_657_269_350_054_8e-9,
    -3.789_465_440_126_737e-9, 7.615_701_208_078_34e-9, -1.496_002_662_714_924e-8,
    2.914_795_345_090_108e-8, -6.771_199_775_845_234e-8, 2.290_048_222_802_665_5e-7,
    -9.929_827_294_231_7e-7, 4.526_062_597_223_154e-6, -1.968_177_810_553_167e-5,
    7.599_527_703_001_776e-5, -2.150_301_193_004_447_7e-4, -1.387_193_183_362_312_2e-4,
    1.010_300_464_864_534_4, 4.849_906_401_408_584,
];

/// The inverse of `erf`, by the approximation of Giles.
pub(super) fn erf_inv(x: Expr<'_>) -> Expr<'_> {
    let w = -(x * -x).log1p();
    let (is_near, is_far) = (w.is_less(6.25), w.is_less(16.0));
    let shift = is_far.select(x.number(3.25), x.number(5.0));
    let w = is_near.select(w - 3.125, w.sqrt() - shift);
    let coefficient = |(number, &near): (usize, &f64)| {
        let mut chosen = x.number(near);
        if let Some(&far) = FAR.get(number) {
            chosen = is_near.select(chosen, x.number(far));
        }
        if let Some(&farther) = FARTHER.get(number) {
            chosen = is_far.select(chosen, x.number(farther));
        }
        (number, chosen)
    };
    let mut coefficients = NEAR.iter().enumerate().map(coefficient);
    let first = coefficients.next().map_or(x, |(_, first)| first);
    let sum = coefficients.fold(first, |sum, (number, coefficient)| {
        let next = coefficient + sum * w;
        // The polynomials for larger `w` have fewer terms.
        match number {
            _ if number < FARTHER.len() => next,
            _ if number < FAR.len() => is_far.select(next, sum),
            _ => is_near.select(next, sum),
        }
    });
    with_infinite_ends(x, sum * x)
}

#[rustfmt::skip]
const ERFC_P: [f64; 9] = [
    2.461_969_814_735_305e-10, 0.564_189_564_831_068_9, 7.463_210_564_422_699,
    48.637_197_098_568_14, 196.520_832_956_077_1, 526.445_194_995_477_3, 934.528_527_171_957_6,
    1.027_551_886_895_157_2e3, 557.535_335_369_399_4,
];

#[rustfmt::skip]
const ERFC_Q: [f64; 9] = [
    1.0, 13.228_195_115_474_499, 86.707_214_088_598_97, 354.937_778_887_819_9,
    975.708_501_743_205_5, 1.823_909_166_879_097_3e3, 2.246_337_608_187_109_7e3,
    1.656_663_091_941_613_4e3, 557.535_340_817_727_7,
];

#[rustfmt::skip]
const ERFC_R: [f64; 6] = [
    0.564_189_583_547_755_1, 1.275_366_707_599_781, 5.019_050_422_511_805, 6.160_210_979_930_536,
    7.409_742_699_504_489_5, 2.978_866_653_721_002_2,
];

#[rustfmt::skip]
const ERFC_S: [f64; 7] = [
    1.0, 2.260_528_632_201_172_6, 9.396_035_249_380_015, 12.048_953_980_809_666,
    17.081_445_074_756_59, 9.608_968_090_632_859, 3.369_076_451_000_815,
];

#[rustfmt::skip]
const ERF_T: [f64; 5] = [
    9.604_973_739_870_516, 90.026_019_720_384_27, 2.232_005_345_946_843e3, 7.003_325_141_128_051e3,
    5.559_230_130_103_949e4,
];

#[rustfmt::skip]
const ERF_U: [f64; 6] = [
    1.0, 33.561_714_164_750_31, 521.357_949_780_152_7, 4.594_323_829_709_801e3,
    2.262_900_006_138_909_5e4, 4.926_739_426_086_359e4,
];

/// The largest number whose exponential is finite in 64 bits.
const MAX_LOG: f64 = 709.782_712_893_384;

/// `erfc`, as in the Cephes library.
pub(super) fn erfc(x: Expr<'_>) -> Expr<'_> {
    let squared = x * x;
    let erf = x * polynomial(squared, &ERF_T) / polynomial(squared, &ERF_U);
    x.abs().is_less(1.0).select(1.0 - erf, erfc_beyond_one(x))
}

fn erfc_beyond_one(x: Expr<'_>) -> Expr<'_> {
    let (z, size) = (-(x * x), x.abs());
    let exponential = z.exp();
    let ratio = |over, under| exponential * polynomial(size, over) / polynomial(size, under);
    let value = size.is_less(8.0).select(ratio(&ERFC_P, &ERFC_Q), ratio(&ERFC_R, &ERFC_S));
    let positive = value.but(z.is_less(-MAX_LOG), 0.0);
    positive.but(x.is_less(0.0), 2.0 - positive)
}
