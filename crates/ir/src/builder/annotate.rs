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
    /// Runs `body`; the instructions that it adds come from where `metadata` says.
    /// Within a scope in a scope the inner one holds.
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

    /// Runs `body`; the values of the instructions that it adds are sharded as
    /// `sharding` says. Within a scope in a scope the inner one holds.
    ///
    /// In computations that `body` adds, instructions have no sharding of their
    /// caller's scope.
    pub fn with_sharding<T>(&mut self, sharding: Sharding, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.scope.sharding.replace(sharding);
        let made = body(self);
        self.scope.sharding = outer;
        made
    }

    /// Runs `body`; the instructions that it adds have these frontend attributes,
    /// after those of the scopes around it. The inner one of two of a name holds.
    ///
    /// In computations that `body` adds, instructions have no frontend attributes
    /// of their caller's scope.
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
    /// If there is no such instruction.
    pub fn set_metadata(&mut self, id: InstId, metadata: OpMetadata) -> Result<(), BuildError> {
        self.check_ids("set_metadata", &[id])?;
        self.module.set_metadata(id, metadata);
        Ok(())
    }

    /// Says how the value of an instruction is spread over devices. The verifier
    /// asks whether it fits the shape.
    ///
    /// # Errors
    /// If there is no such instruction.
    pub fn set_sharding(&mut self, id: InstId, sharding: Sharding) -> Result<(), BuildError> {
        self.check_ids("set_sharding", &[id])?;
        self.set_extra(id, |extras| extras.sharding = Some(Box::new(sharding)));
        Ok(())
    }

    /// Gives an instruction these frontend attributes instead of those it has.
    ///
    /// # Errors
    /// If there is no such instruction.
    pub fn set_frontend_attributes(
        &mut self,
        id: InstId,
        attributes: FrontendAttributes,
    ) -> Result<(), BuildError> {
        self.check_ids("set_frontend_attributes", &[id])?;
        self.set_extra(id, |extras| extras.frontend_attributes = attributes);
        Ok(())
    }

    /// Begins a computation: its instructions come from the same place, but what
    /// was said of the caller's values does not hold for them. Returns the scope
    /// to go back to.
    pub(super) fn enter_computation(&mut self) -> Scope {
        let metadata = self.scope.metadata.clone();
        std::mem::replace(&mut self.scope, Scope { metadata, ..Scope::default() })
    }

    /// Says of an instruction that was added what the scope says.
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
