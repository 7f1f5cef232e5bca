//! Lets a front end annotate the instructions that it builds: their source, their sharding, and
//! attributes for its own use.

use super::{BuildError, Builder};
use crate::entity::InstId;
use crate::metadata::{Extras, FrontendAttributes, OpMetadata};
use crate::types::sharding::Sharding;

/// The annotations of every added instruction.
#[derive(Debug, Default)]
pub(super) struct Scope {
    metadata: Option<OpMetadata>,
    sharding: Option<Sharding>,
    frontend_attributes: FrontendAttributes,
}

impl Builder {
    /// Runs `body`; `metadata` gives the source of the instructions that it adds. Of nested
    /// scopes the innermost applies.
    ///
    /// ```
    /// use tilewright_ir::{Builder, ElementType, OpMetadata, Opcode, Shape};
    ///
    /// # fn main() -> Result<(), tilewright_ir::BuildError> {
    /// let mut b = Builder::new("scope");
    /// let x = b.parameter("x", Shape::array(ElementType::F32, [2]))?;
    /// let line = OpMetadata {
    ///     op_name: "model/exp".into(),
    ///     source_file: "model.py".into(),
    ///     source_line: 7,
    ///     ..OpMetadata::default()
    /// };
    /// let y = b.with_metadata(line, |b| b.unary(Opcode::Exp, x))?;
    /// assert_eq!(b.module().metadata(y).map(|m| m.source_line), Some(7));
    /// assert!(b.module().metadata(x).is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_metadata<T>(
        &mut self,
        metadata: OpMetadata,
        body: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = self.scope.metadata.replace(metadata);
        let made = body(self);
        self.scope.metadata = outer;
        made
    }

    /// Runs `body`; `sharding` applies to the values of the instructions that it adds. Of
    /// nested scopes the innermost applies.
    ///
    /// The scope does not extend to computations that `body` adds.
    pub fn with_sharding<T>(&mut self, sharding: Sharding, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.scope.sharding.replace(sharding);
        let made = body(self);
        self.scope.sharding = outer;
        made
    }

    /// Runs `body`; the instructions that it adds have these frontend attributes, after those
    /// of the enclosing scopes. If two attributes have one name, the inner one applies.
    ///
    /// The scope does not extend to computations that `body` adds.
    pub fn with_frontend_attributes<T>(
        &mut self,
        attributes: FrontendAttributes,
        body: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = self.scope.frontend_attributes.clone();
        let attributes_of_scope = &mut self.scope.frontend_attributes;
        attributes_of_scope.retain(|(name, _)| attributes.iter().all(|(inner, _)| inner != name));
        attributes_of_scope.extend(attributes);
        let made = body(self);
        self.scope.frontend_attributes = outer;
        made
    }

    /// Says where an instruction comes from.
    ///
    /// # Errors
    /// Returns an error if the instruction does not exist.
    pub fn set_metadata(&mut self, id: InstId, metadata: OpMetadata) -> Result<(), BuildError> {
        self.check_ids("set_metadata", &[id])?;
        self.module.set_metadata(id, metadata);
        Ok(())
    }

    /// Says how the value of an instruction is spread over devices. The verifier
    /// asks whether it fits the shape.
    ///
    /// # Errors
    /// Returns an error if the instruction does not exist.
    pub fn set_sharding(&mut self, id: InstId, sharding: Sharding) -> Result<(), BuildError> {
        self.check_ids("set_sharding", &[id])?;
        self.set_extra(id, |extras| extras.sharding = Some(Box::new(sharding)));
        Ok(())
    }

    /// Gives an instruction these frontend attributes instead of those it has.
    ///
    /// # Errors
    /// Returns an error if the instruction does not exist.
    pub fn set_frontend_attributes(
        &mut self,
        id: InstId,
        attributes: FrontendAttributes,
    ) -> Result<(), BuildError> {
        self.check_ids("set_frontend_attributes", &[id])?;
        self.set_extra(id, |extras| extras.frontend_attributes = attributes);
        Ok(())
    }

    /// Begins a computation. Its instructions have the same source, but the sharding and
    /// attributes of the caller's scope do not apply to them. Returns the caller's scope, to be
    /// restored.
    pub(super) fn enter_computation(&mut self) -> Scope {
        let metadata = self.scope.metadata.clone();
        std::mem::replace(&mut self.scope, Scope { metadata, ..Scope::default() })
    }

    /// Annotates an added instruction with the scope's annotations.
    pub(super) fn annotate(&mut self, id: InstId) {
        if let Some(metadata) = self.scope.metadata.clone() {
            self.module.set_metadata(id, metadata);
        }
        let (sharding, attributes) =
            (self.scope.sharding.clone(), self.scope.frontend_attributes.clone());
        if sharding.is_some() || !attributes.is_empty() {
            self.set_extra(id, |extras| {
                extras.sharding = sharding.map(Box::new);
                extras.frontend_attributes = attributes;
            });
        }
    }

    fn set_extra(&mut self, id: InstId, set: impl FnOnce(&mut Extras)) {
        let mut extras = self.module.extras(id).cloned().unwrap_or_default();
        set(&mut extras);
        self.module.set_extras(id, extras);
    }
}
