//! Shardings of all generations.

use tilewright_ir::OpMetadata;
use tilewright_ir::devices::{AxisRef, Mesh, MeshDevices};
use tilewright_ir::sharding::{
    DimSharding, LeafSharding, NamedSharding, Placement, ReductionOp, ShardGroup, Sharding,
    Subgroup, TileDevices, Tiling,
};

use super::{Parse, Parser, SyntaxError};

const PLACEMENT: &str = "`replicated`, `manual`, `unknown`, `unreduced`, `maximal device=`, \
     `devices=` or `mesh[`";

impl Parser<'_> {
    /// `sharding := leaf | "{" [leaf ("," leaf)*] "}"`
    pub(super) fn sharding(&mut self) -> Parse<Sharding> {
        self.cursor.skip_space();
        let mut ahead = self.cursor;
        let is_tuple = ahead.eat(b'{') && {
            ahead.skip_space();
            matches!(ahead.peek(), b'{' | b'}')
        };
        if is_tuple {
            let leaves = self.braced("`{`", Self::leaf_sharding)?;
            return Ok(Sharding::Tuple(leaves));
        }
        self.leaf_sharding().map(Sharding::Leaf)
    }

    /// `leaf := "{" placement [group] ["metadata" "=" sources] "}"`
    fn leaf_sharding(&mut self) -> Parse<LeafSharding> {
        self.expect(b'{', "`{` and a sharding, as `{replicated}`")?;
        let placement = self.placement()?;
        let mut leaf = LeafSharding::from(placement);
        loop {
            self.accept(b',');
            self.cursor.skip_space();
            match self.cursor.peek_word() {
                Some("metadata") if leaf.metadata.is_empty() => {
                    self.cursor.word();
                    self.expect(b'=', "`=` and metadata")?;
                    leaf.metadata = self.sources()?;
                }
                Some(word @ ("shard_as" | "shard_like")) if leaf.group.is_none() => {
                    self.cursor.word();
                    let id = self.integer("the number of a group")?;
                    leaf.group = Some(match word {
                        "shard_as" => ShardGroup::As(id),
                        _ => ShardGroup::Like(id),
                    });
                }
                _ => break,
            }
        }
        self.expect(b'}', "`metadata=`, `shard_as`, `shard_like` or `}`")?;
        Ok(leaf)
    }

    /// `sources := metadata | "{" [metadata ("," metadata)*] "}"`
    fn sources(&mut self) -> Parse<Vec<OpMetadata>> {
        self.cursor.skip_space();
        let mut ahead = self.cursor;
        let several = ahead.eat(b'{') && ahead.accept_after_space(b'{');
        if several {
            return self.braced("`{`", Self::metadata_fields);
        }
        Ok(vec![self.metadata_fields()?])
    }

    /// ```text
    /// placement := "replicated" | "manual" | "unknown" | "unreduced"
    ///            | "maximal" "device" "=" integer | "devices" "=" tiling
    ///            | "mesh" mesh named | "maximal_mesh" "[" "device_id" "=" integer "]"
    /// ```
    fn placement(&mut self) -> Parse<Placement> {
        self.cursor.skip_space();
        let word = self.cursor.peek_word().unwrap_or("");
        let placement = match word {
            "replicated" => Placement::Replicated,
            "manual" => Placement::Manual,
            "unknown" => Placement::Unknown,
            "unreduced" => Placement::Unreduced,
            "maximal" => {
                self.cursor.word();
                let device = self.named_integer("device", "the id of a device")?;
                return Ok(Placement::Maximal(device));
            }
            "devices" => {
                self.cursor.word();
                self.expect(b'=', "`=` and tiles, as in `devices=[2,2]<=[4]`")?;
                return self.tiling();
            }
            "maximal_mesh" => {
                self.cursor.word();
                self.expect(b'[', "`[device_id=`")?;
                let device = self.named_integer("device_id", "the id of a device")?;
                self.expect(b']', "`]`")?;
                let devices = MeshDevices::List(vec![device]);
                return Ok(named(Mesh { axes: Vec::new(), devices }));
            }
            "mesh" => {
                self.cursor.word();
                let mesh = self.mesh()?;
                return self.named_sharding(mesh);
            }
            _ => return self.unexpected(PLACEMENT),
        };
        self.cursor.word();
        Ok(placement)
    }

    /// `word "=" integer`
    fn named_integer(&mut self, word: &str, what: &str) -> Parse<i64> {
        if !self.keyword(word) {
            return self.unexpected(&format!("`{word}=`"));
        }
        self.expect(b'=', "`=`")?;
        self.integer(what)
    }

    /// ```text
    /// tiling    := "[" sizes "]" (ids | iota) [subgroups]
    /// subgroups := "last_tile_dim_replicate" | "last_tile_dims" "=" "{" words "}"
    /// ```
    fn tiling(&mut self) -> Parse<Placement> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let dims = self.bracketed("`[` and sizes", |parser| parser.integer("a size"))?;
        self.cursor.skip_space();
        let devices = if self.cursor.peek() == b'<' {
            TileDevices::Iota(self.iota_devices()?)
        } else {
            TileDevices::List(self.device_list()?)
        };
        self.accept(b',');
        let subgroups = if self.keyword("last_tile_dim_replicate") {
            vec![Subgroup::Replicated]
        } else if self.keyword("last_tile_dims") {
            self.expect(b'=', "`=`")?;
            self.braced("`{` and words", Self::subgroup)?
        } else {
            Vec::new()
        };
        if subgroups.len() > dims.len() {
            let error = SyntaxError::new(self.span_since(start), "fewer dims than subgroups");
            return self.fail(error);
        }
        Ok(Placement::Tiled(Tiling { dims, devices, subgroups }))
    }

    /// `integer ("," integer)*`, as far as numbers follow.
    fn device_list(&mut self) -> Parse<Vec<i64>> {
        let mut ids = vec![self.integer("the id of a device, or `<=`")?];
        loop {
            let before = self.cursor.pos();
            self.accept(b',');
            self.cursor.skip_space();
            if !self.cursor.peek().is_ascii_digit() {
                self.cursor.set_pos(before);
                return Ok(ids);
            }
            ids.push(self.integer("the id of a device")?);
        }
    }

    fn subgroup(&mut self) -> Parse<Subgroup> {
        let known = [
            ("replicated", Subgroup::Replicated),
            ("manual", Subgroup::Manual),
            ("unreduced", Subgroup::Unreduced),
        ];
        self.cursor.skip_space();
        match known.iter().find(|(word, _)| self.keyword(word)) {
            Some(&(_, subgroup)) => Ok(subgroup),
            None => self.unexpected("`replicated`, `manual` or `unreduced`"),
        }
    }

    /// ```text
    /// named := ("," ("replicated" | "unreduced" | "manual"))
    ///        | [[","] "[" [dim ("," dim)*] "]"] ("," word "=" ["max" | "min"] "{" axes "}")*
    /// ```
    fn named_sharding(&mut self, mesh: Mesh) -> Parse<Placement> {
        let whole: Vec<AxisRef> = (0..mesh.axes.len()).map(AxisRef::whole).collect();
        let mut sharding = empty(mesh);
        self.cursor.skip_space();
        // The comma between the mesh and the axes may be missing.
        if self.cursor.peek() == b'[' {
            sharding.dims = self.bracketed("`[`", |p| p.dim_sharding(&sharding.mesh))?;
        }
        loop {
            let before = self.cursor.pos();
            if !self.accept(b',') {
                break;
            }
            self.cursor.skip_space();
            if self.cursor.peek() == b'[' {
                sharding.dims = self.bracketed("`[`", |p| p.dim_sharding(&sharding.mesh))?;
                continue;
            }
            let axes = match self.cursor.peek_word() {
                Some("replicated") => &mut sharding.replicated,
                Some("unreduced") => &mut sharding.unreduced,
                Some("manual") => &mut sharding.manual,
                _ => {
                    self.cursor.set_pos(before);
                    break;
                }
            };
            let word = self.cursor.word().unwrap_or_default();
            let is_replicated = word == "replicated";
            if self.accept(b'=') {
                self.cursor.skip_space();
                let reduction = self.cursor.peek_word().filter(|_| word == "unreduced");
                if let Some(reduction) = reduction.and_then(ReductionOp::from_word) {
                    self.cursor.word();
                    sharding.reduction = reduction;
                }
                *axes = self.braced("`{` and axes", |parser| parser.axis(&sharding.mesh))?;
            } else if !is_replicated {
                // A sharding that is replicated along all axes needs none.
                axes.clone_from(&whole);
            }
        }
        Ok(Placement::Named(Box::new(sharding)))
    }

    /// `dim := "{" [axis ("," axis)*] ["," "?"] "}"`
    fn dim_sharding(&mut self, mesh: &Mesh) -> Parse<DimSharding> {
        self.expect(b'{', "`{` and the axes of a dim")?;
        let mut dim = DimSharding { axes: Vec::new(), is_open: false };
        while !self.accept(b'}') {
            if dim.is_open {
                return self.unexpected("`}`");
            }
            if !dim.axes.is_empty() {
                self.expect(b',', "`,` or `}`")?;
            }
            if self.accept(b'?') {
                dim.is_open = true;
            } else {
                dim.axes.push(self.axis(mesh)?);
            }
        }
        Ok(dim)
    }
}

fn empty(mesh: Mesh) -> NamedSharding {
    NamedSharding {
        mesh,
        dims: Vec::new(),
        replicated: Vec::new(),
        unreduced: Vec::new(),
        reduction: ReductionOp::Sum,
        manual: Vec::new(),
    }
}

fn named(mesh: Mesh) -> Placement {
    Placement::Named(Box::new(empty(mesh)))
}
