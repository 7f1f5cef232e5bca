//! Devices: lists of their ids, meshes, the groups of collectives.

use smol_str::SmolStr;
use tilewright_ir::devices::{
    AxisRef, IotaDevices, Mesh, MeshAxis, MeshDevices, ReplicaGroups, SubAxis,
};

use super::{Parse, Parser, SyntaxError};

impl Parser<'_> {
    /// ```text
    /// groups := "{" ["{" ids "}" ("," ...)*] "}"
    ///         | "[" integer "," integer "]" "<=" iota
    ///         | mesh "{" [axis ("," axis)*] "}"
    /// ```
    pub(super) fn replica_groups(&mut self) -> Parse<ReplicaGroups> {
        self.cursor.skip_space();
        match self.cursor.peek() {
            b'{' => self.braced("`{` and groups of devices", Self::ids).map(ReplicaGroups::Lists),
            b'[' => self.iota_groups(),
            _ if self.keyword("mesh") => {
                let mesh = self.mesh()?;
                let axes = self.braced("`{` and axes", |parser| parser.axis(&mesh))?;
                Ok(ReplicaGroups::Mesh { mesh, axes })
            }
            _ => self.unexpected("groups, as `{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['x'=2] {'x'}`"),
        }
    }

    fn iota_groups(&mut self) -> Parse<ReplicaGroups> {
        let start = self.cursor.pos();
        let sizes = self.bracketed("`[`", |parser| parser.integer("an integer"))?;
        let &[groups, size] = sizes.as_slice() else {
            let error = SyntaxError::new(self.span_since(start), "not a number of groups");
            return self.fail(error.expected("the number of groups and their size, as `[2,4]`"));
        };
        let devices = self.iota_devices()?;
        Ok(ReplicaGroups::Iota { groups, size, devices })
    }

    /// `iota := "<=" "[" sizes "]" ["T" "(" permutation ")"]`
    pub(super) fn iota_devices(&mut self) -> Parse<IotaDevices> {
        self.cursor.skip_space();
        if !self.cursor.eat_text("<=") {
            return self.unexpected("`<=`, as in `<=[4]`");
        }
        self.iota()
    }

    /// `"[" sizes "]" ["T" "(" permutation ")"]`
    fn iota(&mut self) -> Parse<IotaDevices> {
        let reshape_dims = self.bracketed("`[` and sizes", |p| p.integer("a size"))?;
        self.cursor.skip_space();
        let transposed = self.cursor.peek() == b'T' && self.cursor.peek_second() == b'(';
        if !transposed {
            return Ok(in_one_row(reshape_dims));
        }
        self.cursor.bump();
        let start = self.cursor.pos();
        let transpose_perm =
            self.list(b'(', b')', "`(` and dims", |parser| parser.integer("the number of a dim"))?;
        let mut sorted = transpose_perm.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq((0i64..).take(reshape_dims.len())) {
            let error = SyntaxError::new(self.span_since(start), "not a permutation of the sizes");
            let count = reshape_dims.len();
            return self.fail(error.expected(format!("each number below {count} once")));
        }
        let devices = IotaDevices { reshape_dims, transpose_perm };
        Ok(if devices.is_plain() { in_one_row(devices.reshape_dims) } else { devices })
    }

    /// `ids := "{" [integer ("," integer)*] "}"`
    pub(super) fn ids(&mut self) -> Parse<Vec<i64>> {
        self.braced("`{` and ids of devices", |parser| parser.integer("the id of a device"))
    }

    /// ```text
    /// mesh   := "[" [string "=" size ("," ...)*] "]" ["," "device_ids" "=" "(" which ")"]
    /// which  := integer ("," integer)* | "[" sizes "]" ["T" "(" permutation ")"]
    /// ```
    /// after its word `mesh`.
    pub(super) fn mesh(&mut self) -> Parse<Mesh> {
        let axes = self.bracketed("`[` and axes, as `'x'=2`", |parser| {
            let name = parser.axis_name()?;
            parser.expect(b'=', "`=` and the size of the axis")?;
            Ok(MeshAxis { name, size: parser.integer("the size of the axis")? })
        })?;
        let devices = self.mesh_devices()?;
        Ok(Mesh { axes, devices })
    }

    fn axis_name(&mut self) -> Parse<SmolStr> {
        self.string("the name of an axis in quotes")
    }

    fn mesh_devices(&mut self) -> Parse<MeshDevices> {
        let start = self.cursor.pos();
        if !(self.accept(b',') && self.keyword("device_ids")) {
            self.cursor.set_pos(start);
            return Ok(MeshDevices::InOrder);
        }
        self.expect(b'=', "`=` and the ids of the devices")?;
        self.cursor.skip_space();
        let mut ahead = self.cursor;
        if ahead.eat(b'(') && ahead.accept_after_space(b'[') {
            self.cursor.eat(b'(');
            let iota = self.iota()?;
            self.expect(b')', "`)`")?;
            return Ok(MeshDevices::Iota(iota));
        }
        let ids =
            self.list(b'(', b')', "`(` and ids", |parser| parser.integer("the id of a device"))?;
        Ok(MeshDevices::List(ids))
    }

    /// `axis := string [":" "(" integer ")" integer]`
    pub(super) fn axis(&mut self, mesh: &Mesh) -> Parse<AxisRef> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let name = self.axis_name()?;
        let Some(axis) = mesh.axis(&name) else {
            let message = format!("the mesh has no axis `{name}`");
            return self.fail(SyntaxError::new(self.span_since(start), message));
        };
        if !self.accept(b':') {
            return Ok(AxisRef::whole(axis));
        }
        self.expect(b'(', "`(` and the size of the part before, as in `'x':(1)2`")?;
        let pre_size = self.integer("the size of the part before")?;
        self.expect(b')', "`)` and the size of the part")?;
        let size = self.integer("the size of the part")?;
        Ok(AxisRef { axis, sub_axis: Some(SubAxis { pre_size, size }) })
    }
}

/// Devices in their order, however they are laid out: XLA reads `[2,2]` without
/// a transposition in some places only, and writes `[4]`.
fn in_one_row(sizes: Vec<i64>) -> IotaDevices {
    let count =
        sizes.iter().try_fold(1i64, |count, &size| count.checked_mul(size).filter(|_| size > 0));
    let reshape_dims = match count {
        Some(count) if !sizes.is_empty() => vec![count],
        // The verifier reports the errors of these.
        Some(_) | None => sizes,
    };
    let transpose_perm = (0i64..).take(reshape_dims.len()).collect();
    IotaDevices { reshape_dims, transpose_perm }
}
