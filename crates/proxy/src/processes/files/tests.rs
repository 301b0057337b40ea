use std::os::unix::fs::symlink;

use super::*;

struct Bench {
    folder: tempfile::TempDir,
    root: Root,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("w/sub")).unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        std::fs::write(folder.path().join("w/a.txt"), "one\ntwo\nthree\nfour").unwrap();
        let root = Root::open(&folder.path().join("w")).unwrap();
        Self { folder, root }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("w").join(path)
    }

    fn carry_out(&self, path: &Path, deed: FileDeed) -> Outcome<Option<String>> {
        carry_out(&self.root, &FileJob { number: 1, path: path.to_owned(), deed })
    }

    fn read(&self, path: impl AsRef<Path>) -> Outcome<String> {
        self.read_lines(path, None, None)
    }

    fn read_lines(
        &self,
        path: impl AsRef<Path>,
        line: Option<u64>,
        limit: Option<u64>,
    ) -> Outcome<String> {
        self.carry_out(path.as_ref(), FileDeed::Read { line, limit }).map(Option::unwrap)
    }

    fn write(&self, path: impl AsRef<Path>, text: &str) -> Outcome<()> {
        let done = self.carry_out(path.as_ref(), FileDeed::Write(text.to_owned()))?;
        assert_eq!(done, None);
        Ok(())
    }
}

fn kind<T: std::fmt::Debug>(outcome: Outcome<T>) -> FileFaultKind {
    outcome.unwrap_err().kind
}

#[test]
fn a_file_is_read_whole_or_by_lines() {
    let bench = Bench::new();
    let file = bench.at("a.txt");
    assert_eq!(bench.read(&file).unwrap(), "one\ntwo\nthree\nfour");
    assert_eq!(bench.read("a.txt").unwrap(), "one\ntwo\nthree\nfour");
    for (line, limit, text) in [
        (Some(2), Some(2), "two\nthree\n"),
        (Some(4), None, "four"),
        (Some(0), Some(1), "one\n"),
        (None, Some(0), ""),
        (Some(99), Some(5), ""),
    ] {
        assert_eq!(bench.read_lines(&file, line, limit).unwrap(), text, "{line:?} {limit:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_told_as_such() {
    let bench = Bench::new();
    for path in ["no.txt", "no/such/folder.txt"] {
        let fault = bench.read(path).unwrap_err();
        assert_eq!(fault.kind, FileFaultKind::Missing);
        assert!(fault.words.contains("Resource not found"), "{}", fault.words);
    }
    assert!(!bench.at("no").exists(), "reading makes no folders");
}

#[test]
fn a_file_is_written_anew_shorter_and_with_the_folders_on_the_way() {
    let bench = Bench::new();
    for (path, text) in [("a.txt", "x"), ("new/er/b.txt", "whole"), ("new/er/b.txt", "")] {
        bench.write(bench.at(path), text).unwrap();
        assert_eq!(std::fs::read_to_string(bench.at(path)).unwrap(), text);
    }
}

#[test]
fn nothing_outside_of_the_workspace_is_read_or_written() {
    let bench = Bench::new();
    let outside = bench.folder.path().join("secret");
    symlink(&outside, bench.at("link")).unwrap();
    symlink(bench.folder.path(), bench.at("up")).unwrap();
    symlink("/etc/passwd", bench.at("passwd")).unwrap();
    symlink(bench.folder.path().join("nothing"), bench.at("broken")).unwrap();
    let paths = [
        PathBuf::from("../../etc/passwd"),
        PathBuf::from("../secret"),
        bench.at("../secret"),
        bench.at("sub/../../secret"),
        PathBuf::from("/etc/passwd"),
        outside.clone(),
        bench.at("link"),
        bench.at("up/secret"),
        bench.at("up/new/file"),
        bench.at("passwd"),
        bench.at("broken"),
        bench.at("broken/file"),
        // A neighbour whose name begins the same.
        bench.folder.path().join("w2/file"),
        PathBuf::from("/proc/self/environ"),
    ];
    for path in paths {
        assert_eq!(kind(bench.read(&path)), FileFaultKind::Refused, "{}", path.display());
        assert_eq!(kind(bench.write(&path, "x")), FileFaultKind::Refused, "{}", path.display());
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    let mut left: Vec<_> =
        std::fs::read_dir(bench.folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["secret", "w"]);
}

#[test]
fn a_link_that_stays_inside_is_followed_also_an_absolute_one() {
    let bench = Bench::new();
    symlink("../a.txt", bench.at("sub/near")).unwrap();
    symlink(bench.at("sub"), bench.at("far")).unwrap();
    assert!(bench.read(bench.at("sub/near")).unwrap().starts_with("one"));
    bench.write(bench.at("far/near"), "changed").unwrap();
    assert_eq!(std::fs::read_to_string(bench.at("a.txt")).unwrap(), "changed");
    assert!(bench.at("sub/near").symlink_metadata().unwrap().is_symlink());
    // And a workspace that is itself reached over a link.
    symlink(bench.at(""), bench.folder.path().join("w3")).unwrap();
    let root = bench.folder.path().join("w3");
    let deed = FileDeed::Read { line: None, limit: None };
    let job = FileJob { number: 1, path: root.join("a.txt"), deed };
    assert_eq!(carry_out(&Root::open(&root).unwrap(), &job).unwrap().as_deref(), Some("changed"));
}

#[test]
fn a_link_that_is_put_in_the_way_after_the_look_is_not_followed() {
    let bench = Bench::new();
    bench.write("sub/b.txt", "inside").unwrap();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = Place::find(&bench.root, Path::new("sub/b.txt")).unwrap();
    let new = Place::find(&bench.root, Path::new("sub/new/c.txt")).unwrap();
    assert!(file.open(flags).is_ok());
    // The file becomes a link, then its folder does.
    std::fs::remove_file(bench.at("sub/b.txt")).unwrap();
    symlink(bench.folder.path().join("secret"), bench.at("sub/b.txt")).unwrap();
    assert_eq!(file.open(flags).unwrap_err(), Errno::LOOP);
    std::fs::remove_dir_all(bench.at("sub")).unwrap();
    symlink(bench.folder.path(), bench.at("sub")).unwrap();
    assert!(file.open(flags).is_err());
    assert!(new.open(OFlags::WRONLY | OFlags::CREATE).is_err());
    assert!(!bench.folder.path().join("new").exists());
}

#[test]
fn a_hundred_megabytes_are_refused_whole_and_served_by_lines() {
    let bench = Bench::new();
    let path = bench.at("big.txt");
    let mut big = File::create(&path).unwrap();
    let block = "0123456789abcde\n".repeat(1 << 16);
    for _ in 0..100 {
        big.write_all(block.as_bytes()).unwrap();
    }
    let fault = bench.read(&path).unwrap_err();
    assert_eq!(fault.kind, FileFaultKind::Refused);
    assert!(fault.words.contains("line and limit"), "{}", fault.words);
    let lines = bench.read_lines(&path, Some(6_000_000), Some(2)).unwrap();
    assert_eq!(lines, "0123456789abcde\n".repeat(2));
    let all = bench.read_lines(&path, Some(2), None);
    assert_eq!(kind(all), FileFaultKind::Refused);
    // One line without an end.
    std::fs::write(&path, vec![b'x'; TEXT_BYTES_MAX + 1]).unwrap();
    assert_eq!(kind(bench.read_lines(&path, Some(1), Some(1))), FileFaultKind::Refused);
    assert_eq!(kind(bench.write("b", &"x".repeat(TEXT_BYTES_MAX + 1))), FileFaultKind::Refused);
}

#[test]
fn what_is_no_plain_text_file_is_refused_and_nobody_hangs() {
    let bench = Bench::new();
    std::fs::write(bench.at("binary"), [0xff, 0xfe]).unwrap();
    rustix::fs::mknodat(
        CWD,
        bench.at("pipe"),
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for path in ["binary", "pipe", "sub", ""] {
        assert_eq!(kind(bench.read(bench.at(path))), FileFaultKind::Refused, "{path}");
    }
    assert_eq!(kind(bench.write("sub", "x")), FileFaultKind::Refused);
    assert_eq!(kind(bench.write("a.txt/b", "x")), FileFaultKind::Failed);
    assert!(bench.write("pipe", "x").is_err(), "nobody reads it");
}

#[test]
fn a_folder_for_a_command_is_one_of_the_workspace() {
    let bench = Bench::new();
    let real = bench.at("").canonicalize().unwrap();
    assert_eq!(bench.root.folder_within(&bench.at("sub")).unwrap(), real.join("sub"));
    assert_eq!(bench.root.folder_within(&bench.at("")).unwrap(), real);
    let told = |path: PathBuf| kind(bench.root.folder_within(&path));
    assert_eq!(told("/".into()), FileFaultKind::Refused);
    assert_eq!(told(bench.at("no")), FileFaultKind::Missing);
    assert_eq!(told(bench.at("a.txt")), FileFaultKind::Refused);
}

#[test]
fn what_is_put_in_the_place_of_the_workspace_is_not_the_workspace() {
    let bench = Bench::new();
    let (workspace, moved) = (bench.at(""), bench.folder.path().join("moved"));
    std::fs::rename(&workspace, &moved).unwrap();
    symlink("/", bench.folder.path().join("w")).unwrap();
    assert_eq!(kind(bench.read("etc/passwd")), FileFaultKind::Refused);
    assert_eq!(kind(bench.write("tmp/farhelm-was-here", "x")), FileFaultKind::Refused);
    assert!(bench.root.folder_within(&bench.at("etc")).is_err());
}
