//! The host against a small model of a relay, with crashes at every step.

mod attachments;
mod connection;
mod deliveries;
mod launches;
mod notes;
mod pictures;
mod sessions;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::content::Attachment;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::{Order, Report};
use domain::{Content, RequestId, Sequence};
use serde_json::Value;
use wire::native::proxy_frames;

use super::*;
use crate::disk::{Crash, MemoryDisk};
use crate::records::{Failing, MemoryRecords};
use world::{Addressed, CRASHES, World, control, deliver, file, text};
