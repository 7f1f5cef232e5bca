//! The module behind a Python object: verified, open for edits, lent for a call, or gone.
//!
//! A module is read and edited under a lock. While it is held, nothing runs Python code: that
//! could hand the GIL to a thread that waits for the lock. So closures here return Rust values.
//! This file does not name PyO3, so that `tests/state.rs` can use it without Python.

use std::ptr::from_ref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tilewright::ir::verify::Rejected;
use tilewright::ir::{CompId, Entity as _, InstId, Module as Graph, Verified};

/// A module, and which of its handles are stale.
#[derive(Debug)]
pub(crate) struct Cell(RwLock<Shared>);

#[derive(Debug)]
struct Shared {
    state: ModuleState,
    /// For each edit that was rolled back, the bound of the ids of instructions that stayed.
    rolled_back: Vec<usize>,
}

#[derive(Debug)]
enum ModuleState {
    /// Valid.
    Verified(Arc<Verified>),
    /// Under edit. `before` is what a rollback restores; a pass's module has none.
    Open { graph: Box<Graph>, before: Option<Arc<Verified>>, editing: bool },
    /// The module as it was before an edit, whose result is being verified.
    Ending(Arc<Verified>),
    /// Borrowed from a caller for the time of a callback: shorter than the type says. So the
    /// reference leaves its lock nowhere but as the shorter borrow that `Shared::graph` returns.
    Lent(&'static Graph),
    /// Given back to the pipeline.
    Closed,
}

/// An instruction, as a handle remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct At {
    pub(crate) id: InstId,
    /// The number of rollbacks before the handle was made.
    pub(crate) epoch: usize,
}

/// Why a module or a part of it cannot be used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gone {
    Module,
    Instruction,
    Computation,
    NotEditing,
    Editing,
}

/// Why an edit was not kept.
#[derive(Debug)]
pub(crate) enum Unkept {
    /// The module was not under edit.
    Gone(Gone),
    /// The edited module is not valid.
    Rejected(Box<Rejected>),
}

impl Shared {
    fn graph(&self) -> Result<&Graph, Gone> {
        match &self.state {
            ModuleState::Verified(verified) | ModuleState::Ending(verified) => Ok(verified),
            ModuleState::Open { graph, .. } => Ok(graph),
            ModuleState::Lent(graph) => Ok(graph),
            ModuleState::Closed => Err(Gone::Module),
        }
    }

    /// Checks that a handle stands for an instruction.
    fn check(&self, at: At) -> Result<(), Gone> {
        let graph = self.graph()?;
        let index = at.id.index();
        let bounds = self.rolled_back.get(at.epoch..).unwrap_or_default();
        let exists = index < graph.instruction_bound() && bounds.iter().all(|&end| index < end);
        let parent = if exists { graph.instruction(at.id).parent() } else { None };
        parent.map(|_| ()).ok_or(Gone::Instruction)
    }
}

impl Cell {
    pub(crate) fn new(verified: Arc<Verified>) -> Self {
        Self::of(ModuleState::Verified(verified))
    }

    /// A module for a pass to edit, without a way back.
    pub(crate) fn open(graph: Graph) -> Self {
        Self::of(ModuleState::Open { graph: Box::new(graph), before: None, editing: false })
    }

    fn of(state: ModuleState) -> Self {
        Self(RwLock::new(Shared { state, rolled_back: Vec::new() }))
    }

    /// Lends a module for the time of a call: `made` wraps the cell for it, and `call` uses that.
    /// Afterwards the cell is closed.
    pub(crate) fn lend<M, T, E>(
        graph: &Graph,
        made: impl FnOnce(Self) -> Result<M, E>,
        cell: impl Fn(&M) -> &Self,
        call: impl FnOnce(&M) -> Result<T, E>,
    ) -> Result<T, E> {
        /// Closes the cell, also if the call panics.
        struct Loan<'a>(&'a Cell);
        impl Drop for Loan<'_> {
            fn drop(&mut self) {
                self.0.write().state = ModuleState::Closed;
            }
        }
        let made = made(Self::of(ModuleState::Closed))?;
        let loan = Loan(cell(&made));
        // SAFETY: `graph` is borrowed until this function returns, and not changed while it is. On
        // each way out of it, `loan` is dropped before, which waits for the lock, and so for every
        // reader, and puts `Closed` in the place of the reference. Nothing copies the reference
        // from behind the lock: `Shared::graph` shortens it to a borrow of the locked state, and
        // the closures that the methods here pass it to accept any lifetime, so keep no borrow.
        // Nothing can forget `loan`, since nothing else has it, whatever Python does in `call`.
        let graph: &'static Graph = unsafe { &*from_ref(graph) };
        loan.0.write().state = ModuleState::Lent(graph);
        call(&made)
    }

    fn shared(&self) -> RwLockReadGuard<'_, Shared> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shared> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the module.
    pub(crate) fn read<T>(&self, f: impl FnOnce(&Graph) -> T) -> Result<T, Gone> {
        Ok(f(self.shared().graph()?))
    }

    /// Reads the module at an instruction that still exists.
    pub(crate) fn at<T>(&self, at: At, f: impl FnOnce(&Graph, InstId) -> T) -> Result<T, Gone> {
        let shared = self.shared();
        shared.check(at)?;
        Ok(f(shared.graph()?, at.id))
    }

    /// Reads the module at a computation that still exists.
    pub(crate) fn in_computation<T>(
        &self,
        id: CompId,
        f: impl FnOnce(&Graph, CompId) -> T,
    ) -> Result<T, Gone> {
        let shared = self.shared();
        let graph = shared.graph()?;
        if !graph.computations().contains(&id) {
            return Err(Gone::Computation);
        }
        Ok(f(graph, id))
    }

    /// Changes the module under edit, given handles that are checked first.
    pub(crate) fn edit<T>(
        &self,
        handles: &[At],
        f: impl FnOnce(&mut Graph) -> T,
    ) -> Result<T, Gone> {
        let mut shared = self.write();
        for &at in handles {
            shared.check(at)?;
        }
        match &mut shared.state {
            ModuleState::Open { graph, editing: true, .. } => Ok(f(graph)),
            _ => Err(Gone::NotEditing),
        }
    }

    /// The number of rollbacks so far.
    pub(crate) fn epoch(&self) -> usize {
        self.shared().rolled_back.len()
    }

    /// The module, if it is verified.
    pub(crate) fn settled(&self) -> Option<Arc<Verified>> {
        match &self.shared().state {
            ModuleState::Verified(verified) | ModuleState::Ending(verified) => {
                Some(Arc::clone(verified))
            }
            _ => None,
        }
    }

    /// Begins an edit.
    pub(crate) fn begin(&self) -> Result<(), Gone> {
        let mut shared = self.write();
        let state = match &mut shared.state {
            ModuleState::Verified(verified) => ModuleState::Open {
                graph: Box::new(verified.as_ref().clone().into_inner()),
                before: Some(Arc::clone(verified)),
                editing: true,
            },
            ModuleState::Open { editing, .. } if !*editing => {
                *editing = true;
                return Ok(());
            }
            ModuleState::Open { .. } | ModuleState::Ending(_) => return Err(Gone::Editing),
            ModuleState::Lent(_) => return Err(Gone::NotEditing),
            ModuleState::Closed => return Err(Gone::Module),
        };
        shared.state = state;
        Ok(())
    }

    /// Ends an edit: keeps it if it is to be kept and the module verifies, and restores the module
    /// as it was before otherwise, also if `verify` panics. The pipeline verifies the module of a
    /// pass.
    pub(crate) fn end(
        &self,
        keep: bool,
        verify: impl FnOnce(Graph) -> Result<Verified, Box<Rejected>>,
    ) -> Result<(), Unkept> {
        let (graph, mut ending) = {
            let mut shared = self.write();
            match &mut shared.state {
                ModuleState::Open { before: None, editing, .. } => {
                    *editing = false;
                    return Ok(());
                }
                ModuleState::Open { graph, before: Some(before), .. } => {
                    let graph = std::mem::take(graph.as_mut());
                    let before = Arc::clone(before);
                    shared.rolled_back.push(before.instruction_bound());
                    if !keep {
                        shared.state = ModuleState::Verified(before);
                        return Ok(());
                    }
                    // Another thread that began an edit now would lose it to the result of this.
                    shared.state = ModuleState::Ending(Arc::clone(&before));
                    (graph, Ending { cell: self, before, edited: None })
                }
                _ => return Err(Unkept::Gone(Gone::NotEditing)),
            }
        };
        ending.edited = Some(verify(graph).map_err(Unkept::Rejected)?);
        Ok(())
    }

    /// Takes the module of a pass back; the cell is closed.
    pub(crate) fn take(&self) -> Option<Graph> {
        let mut shared = self.write();
        match std::mem::replace(&mut shared.state, ModuleState::Closed) {
            ModuleState::Open { graph, .. } => Some(*graph),
            _ => None,
        }
    }
}

/// The end of an edit. When this is dropped, the module is what the edit made of it if that was
/// verified, and what it was before if not. So a panic of the verifier also ends the edit.
struct Ending<'a> {
    cell: &'a Cell,
    before: Arc<Verified>,
    edited: Option<Verified>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut shared = self.cell.write();
        shared.state = ModuleState::Verified(match self.edited.take() {
            Some(edited) => {
                shared.rolled_back.pop();
                Arc::new(edited)
            }
            None => Arc::clone(&self.before),
        });
    }
}
