pub const LOCK_FILE_NAME: &str = "farhelm.lock";
pub struct SqliteLedger;
