//! What the targets run. The conversations are those of `crates/wire/tests/fuzz`, from the same
//! files; the other decoders bring their own, behind the feature `fuzzing`.

mod fuzz {
    #[path = "../../../crates/wire/tests/fuzz/chance.rs"]
    pub(crate) mod chance;
    #[path = "../../../crates/wire/tests/fuzz/dialects.rs"]
    pub(crate) mod dialects;
    #[path = "../../../crates/wire/tests/fuzz/lines.rs"]
    pub(crate) mod lines;
    #[path = "../../../crates/wire/tests/fuzz/native.rs"]
    pub(crate) mod native;
    #[path = "../../../crates/wire/tests/fuzz/visiting.rs"]
    pub(crate) mod visiting;
    #[path = "../../../crates/wire/tests/fuzz/world.rs"]
    pub(crate) mod world;
}

mod visitors {
    pub(crate) mod stage {
        #[path = "../../../../crates/wire/tests/visitors/stage/room.rs"]
        mod room;
        pub(crate) use room::Room;
    }
}

/// Frames, by the name of their target.
pub fn frames(target: &str, bytes: &[u8]) {
    for (name, play) in fuzz::lines::TARGETS {
        if name == target {
            return play(bytes);
        }
    }
    panic!("no target is called {target}");
}
