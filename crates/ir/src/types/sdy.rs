//! Meshes and shardings in frontend attributes, in Shardy's syntax.
//!
//! ```text
//! xla.sdy.meshes        {mesh = #sdy.mesh<["x"=4, "y"=2], device_ids=[3, 2, 1, 0]>}
//! xla.sdy.in_shardings  #sdy.sharding_per_value<[<@mesh, [{"x", "y":(1)2}, {?}]>]>
//! xla.sdy.manual_axes   #sdy<manual_axes{"x", "y"}>
//! ```
//!
//! The grammar is that of Shardy's dialect (`shardy/dialect/sdy/ir/parsers.cc`). Functions
//! return `None` for text that does not follow it.

use smol_str::SmolStr;

use super::devices::{AxisRef, Mesh, MeshAxis, MeshDevices, SubAxis};
use super::sharding::{DimSharding, NamedSharding, ReductionOp};

/// The meshes of a module, each with its name.
pub type Meshes = Vec<(SmolStr, Mesh)>;

/// Returns the meshes of a module: the value of its `xla.sdy.meshes`.
pub fn meshes(text: &str) -> Option<Meshes> {
    let mut cursor = Cursor::new(text);
    cursor.expect('{')?;
    let meshes = cursor.list('}', |cursor| {
        let name = cursor.word()?;
        cursor.expect('=')?;
        cursor.keyword("#sdy.mesh")?;
        Some((name, cursor.mesh()?))
    })?;
    cursor.end(meshes)
}

/// Returns the names of the meshes that shardings are on: the words after `@`, whatever is around them.
pub fn mesh_names(text: &str) -> impl Iterator<Item = &str> {
    text.split('@').skip(1).map(|rest| {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
        match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default().trim_end_matches('\\'),
            None => &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())],
        }
    })
}

/// Parses `xla.sdy.in_shardings` or `xla.sdy.out_shardings`: calls `make` with the sharding of
/// each value on one of these meshes and collects the results. A sharding owns its mesh, so many
/// shardings of a large mesh should not be kept.
pub fn shardings<T>(
    text: &str,
    meshes: &[(SmolStr, Mesh)],
    mut make: impl FnMut(NamedSharding) -> Option<T>,
) -> Option<Vec<T>> {
    let mut cursor = Cursor::new(text);
    cursor.keyword("#sdy.sharding_per_value")?;
    cursor.expect('<')?;
    cursor.expect('[')?;
    let shardings = cursor.list(']', |cursor| make(cursor.sharding(meshes)?))?;
    cursor.expect('>')?;
    cursor.end(shardings)
}

/// Parses `xla.sdy.sharding` of a value that is no tuple, on one of these meshes:
/// `#sdy.sharding<@mesh, [{"x"}, {}]>`, or as a custom call has it,
/// `#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>`.
pub fn sharding(text: &str, meshes: &[(SmolStr, Mesh)]) -> Option<NamedSharding> {
    if let Some(mut several) = shardings(text, meshes, Some) {
        return several.pop().filter(|_| several.is_empty());
    }
    let mut cursor = Cursor::new(text);
    cursor.keyword("#sdy.sharding")?;
    let sharding = cursor.sharding(meshes)?;
    cursor.end(sharding)
}

/// Returns the names of the axes that the program handles itself: `xla.sdy.manual_axes`.
pub fn manual_axes(text: &str) -> Option<Vec<SmolStr>> {
    let mut cursor = Cursor::new(text);
    cursor.keyword("#sdy")?;
    cursor.expect('<')?;
    cursor.keyword("manual_axes")?;
    cursor.expect('{')?;
    let axes = cursor.list('}', Cursor::string)?;
    cursor.expect('>')?;
    cursor.end(axes)
}

/// The unparsed rest of a text.
struct Cursor<'t>(&'t str);

impl<'t> Cursor<'t> {
    /// The value of an attribute may still be in quotes.
    fn new(text: &'t str) -> Self {
        let text = text.trim();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        Self(inner.unwrap_or(text))
    }

    fn end<T>(&mut self, value: T) -> Option<T> {
        self.skip();
        self.0.is_empty().then_some(value)
    }

    /// Skips spaces, and the escapes of quotes within quotes.
    fn skip(&mut self) {
        self.0 = self.0.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, token: char) -> Option<()> {
        self.eat(token.encode_utf8(&mut [0; 4])).then_some(())
    }

    fn keyword(&mut self, word: &str) -> Option<()> {
        self.eat(word).then_some(())
    }

    fn word(&mut self) -> Option<SmolStr> {
        self.skip();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
        let length = self.0.find(|c| !is_part(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        (!word.is_empty()).then(|| word.into())
    }

    fn number(&mut self) -> Option<i64> {
        self.word()?.parse().ok()
    }

    fn string(&mut self) -> Option<SmolStr> {
        self.expect('"')?;
        let (text, rest) = self.0.split_once('"')?;
        self.0 = rest;
        Some(text.trim_end_matches('\\').into())
    }

    /// Parses comma-separated items to the end of the list.
    fn list<T>(
        &mut self,
        end: char,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while self.expect(end).is_none() {
            if !items.is_empty() {
                self.expect(',')?;
            }
            items.push(item(self)?);
        }
        Some(items)
    }

    /// `<["x"=4, "y"=2], device_ids=[0, 1]>`
    fn mesh(&mut self) -> Option<Mesh> {
        self.expect('<')?;
        self.expect('[')?;
        let axes = self.list(']', |cursor| {
            let name = cursor.string()?;
            cursor.expect('=')?;
            Some(MeshAxis { name, size: cursor.number()? })
        })?;
        let mut devices = MeshDevices::InOrder;
        if self.eat(",") {
            self.keyword("device_ids")?;
            self.expect('=')?;
            self.expect('[')?;
            devices = MeshDevices::List(self.list(']', Self::number)?);
        }
        self.expect('>')?;
        Some(Mesh { axes, devices })
    }

    /// `<@mesh, [{"x"}, {?}], replicated={"y"}>`
    fn sharding(&mut self, meshes: &[(SmolStr, Mesh)]) -> Option<NamedSharding> {
        self.expect('<')?;
        let mesh = if self.eat("@") {
            let name = self.word()?;
            meshes.iter().find(|(known, _)| *known == name)?.1.clone()
        } else {
            self.keyword("mesh")?;
            self.mesh()?
        };
        self.expect(',')?;
        self.expect('[')?;
        let dims = self.list(']', |cursor| cursor.dim(&mesh))?;
        let (mut replicated, mut unreduced) = (Vec::new(), Vec::new());
        let mut reduction = ReductionOp::Sum;
        while self.eat(",") {
            let axes = if self.eat("replicated") {
                &mut replicated
            } else {
                self.keyword("unreduced")?;
                &mut unreduced
            };
            self.expect('=')?;
            if !self.eat("{") {
                reduction = ReductionOp::from_word(&self.word()?)?;
                self.expect('{')?;
            }
            *axes = self.list('}', |cursor| cursor.axis(&mesh))?;
        }
        self.expect('>')?;
        let manual = Vec::new();
        Some(NamedSharding { mesh, dims, replicated, unreduced, reduction, manual })
    }

    /// `{"x", "y":(1)2, ?}p1`
    fn dim(&mut self, mesh: &Mesh) -> Option<DimSharding> {
        self.expect('{')?;
        let mut is_open = false;
        let axes = self.list('}', |cursor| {
            is_open |= cursor.eat("?");
            if is_open { Some(None) } else { cursor.axis(mesh).map(Some) }
        })?;
        if self.eat("p") {
            self.number()?;
        }
        Some(DimSharding { axes: axes.into_iter().flatten().collect(), is_open })
    }

    /// `"x"`, or a part of it: `"x":(2)4`.
    fn axis(&mut self, mesh: &Mesh) -> Option<AxisRef> {
        let axis = mesh.axis(&self.string()?)?;
        if !self.eat(":") {
            return Some(AxisRef::whole(axis));
        }
        self.expect('(')?;
        let pre_size = self.number()?;
        self.expect(')')?;
        let sub_axis = Some(SubAxis { pre_size, size: self.number()? });
        Some(AxisRef { axis, sub_axis })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Meshes {
        meshes(
            r#"{mesh = #sdy.mesh<["x"=4, "y"=2]>, other = #sdy.mesh<["z"=2], device_ids=[1, 0]>}"#,
        )
        .unwrap()
    }

    #[test]
    fn meshes_are_read() {
        let [(name, mesh), (_, other)] = &known()[..] else { panic!("two meshes") };
        assert_eq!((name.as_str(), mesh.axes.len(), mesh.axes[1].size), ("mesh", 2, 2));
        assert_eq!(mesh.devices, MeshDevices::InOrder);
        assert_eq!(other.devices, MeshDevices::List(vec![1, 0]));
    }

    #[test]
    fn shardings_are_read() {
        let text = r#"#sdy.sharding_per_value<[<@mesh, [{"x", "y"}p1, {?}, {"x":(2)2, ?}], "#
            .to_owned()
            + r#"replicated={"y"}>, <mesh<["a"=2]>, []>]>"#;
        let read = shardings(&text, &known(), Some).unwrap();
        assert_eq!(read.len(), 2);
        let axes: Vec<_> = read[0].dims.iter().map(|dim| (dim.axes.len(), dim.is_open)).collect();
        assert_eq!(axes, [(2, false), (0, true), (1, true)]);
        let part = SubAxis { pre_size: 2, size: 2 };
        assert_eq!(read[0].dims[2].axes, [AxisRef { axis: 0, sub_axis: Some(part) }]);
        assert_eq!(read[0].replicated, [AxisRef::whole(1)]);
        assert_eq!((read[1].mesh.axes[0].size, read[1].dims.len()), (2, 0));
    }

    #[test]
    fn the_sharding_of_one_value_has_two_forms() {
        let axes = |text: &str| sharding(text, &known()).map(|read| read.dims[0].axes.clone());
        let x = Some(vec![AxisRef::whole(0)]);
        assert_eq!(axes(r#"#sdy.sharding<@mesh, [{"x"}, {}]>"#), x);
        assert_eq!(axes(r#"#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>"#), x);
        assert_eq!(axes(r#"#sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>"#), None);
        assert_eq!(axes(r#"#sdy.sharding<@mesh, [{"x"}, {}]> and more"#), None);
    }

    #[test]
    fn quotes_may_be_escaped() {
        let text = r##""#sdy<manual_axes{\"x\", \"y\"}>""##;
        assert_eq!(manual_axes(text).unwrap(), ["x", "y"]);
        assert_eq!(manual_axes("#sdy<manual_axes{}>").unwrap(), [""; 0]);
    }

    #[test]
    fn other_texts_are_read_as_nothing() {
        for text in ["", "{", "{mesh}", "{mesh = #sdy.mesh<>}", r#"{m = #sdy.mesh<["x"=]>}"#] {
            assert_eq!(meshes(text), None, "{text}");
        }
        let of =
            |text: &str| shardings(&format!("#sdy.sharding_per_value<[{text}]>"), &known(), Some);
        for text in [
            "<@none, []>",
            r#"<@mesh, [{"z"}]>"#,
            "<@mesh>",
            "<@mesh, [{]>",
            r#"<@mesh, [{"x":(1}]>"#,
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(of(r#"<@mesh, [{"x"}]>, "#), None);
        assert_eq!(manual_axes(r#"#sdy<manual_axes{"x"}> more"#), None);
    }
}
