//! The frames of clients as TypeScript, for the page.
//!
//! **Invariant**: the page is compiled against exactly what is declared here. A difference fails
//! the test below, which can also rewrite the file.
//!
//! Not here: how the page reads a frame (`web/src/lib/connection`).

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ts_rs::{Config, TS, TypeVisitor};

use super::frames::{ClientFrame, RelayFrame};
use super::shapes::Envelope;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/lib/wire/generated.ts");
/// Set to write the file instead of comparing it.
const WRITE: &str = "FARHELM_WRITE_TYPES";

/// Collects declarations, each once, and the frames of one direction.
pub(super) struct Writer {
    config: Config,
    seen: BTreeSet<TypeId>,
    declarations: BTreeMap<String, String>,
    frames: Vec<String>,
}

impl Writer {
    fn new() -> Self {
        Self {
            config: Config::new().with_large_int("number"),
            seen: BTreeSet::new(),
            declarations: BTreeMap::new(),
            frames: vec![],
        }
    }

    /// One type of frame.
    pub(super) fn frame<T: TS + 'static>(&mut self, kind: &str) {
        self.visit::<T>();
        // A body without fields of its own adds nothing to its envelope.
        let name = T::name(&self.config);
        let body = if name == "Empty" { String::new() } else { format!(" & {name}") };
        self.frames.push(format!("  | (Envelope & {{ type: \"{kind}\" }}{body})"));
    }

    fn union(&mut self, name: &str) -> String {
        format!("export type {name} =\n{};\n", std::mem::take(&mut self.frames).join("\n"))
    }
}

impl TypeVisitor for Writer {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if !self.seen.insert(TypeId::of::<T>()) {
            return;
        }
        let name = T::name(&self.config);
        // Only derived types have a file of their own; the others are written where they stand.
        if T::output_path().is_some() && name != "Empty" {
            let declaration = format!("export {}\n", T::decl(&self.config));
            self.declarations.insert(name, declaration);
        }
        T::visit_generics(self);
        T::visit_dependencies(self);
    }
}

fn whole() -> String {
    let mut writer = Writer::new();
    writer.visit::<Envelope>();
    ClientFrame::describe(&mut writer);
    let said = writer.union("ClientFrame");
    RelayFrame::describe(&mut writer);
    let heard = writer.union("RelayFrame");
    let declarations: String = writer.declarations.into_values().collect();
    format!(
        "// Written by `cargo xtask codegen` from crates/wire. Do not edit.\n\n\
         {declarations}\n{said}\n{heard}"
    )
}

#[test]
fn the_types_of_the_page_are_those_of_the_wire() {
    let whole = whole();
    if std::env::var_os(WRITE).is_some() {
        std::fs::create_dir_all(Path::new(FILE).parent().unwrap()).unwrap();
        std::fs::write(FILE, &whole).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(kept == whole, "the page's types are out of date; run `cargo xtask codegen`");
}
