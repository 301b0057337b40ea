//! Uploading and downloading files.

use serde_json::json;

use super::Knocked;
use super::whole::Whole;

const BYTES_SHA256: &str = "9f64a747e1b97f131fabb6b447296c9b6f0201e79fb3c5356e6c77e89b6a806a";

// spec: native/attachments.1
// spec: native/attachments.3
#[tokio::test]
async fn a_file_comes_back_as_it_was() {
    let door = Knocked::new().await;
    let bytes = [1_u8, 2, 3, 4];

    let put = door.ask("POST", "/v1/uploads?name=..%2Fshot%20%C3%A4.png");
    let put = put.bearer(&door.operator.token).header("content-type", "image/png");
    let put = put.body(bytes).send().await;

    assert_eq!(put.status, 201, "{}", put.text());
    let told = put.json();
    assert_eq!(told["name"], "shot ä.png");
    assert_eq!((&told["size"], &told["media_type"]), (&json!(4), &json!("image/png")));
    assert_eq!(told["sha256"], BYTES_SHA256);
    let path = format!("/v1/uploads/{}", told["attachment_id"].as_str().unwrap());
    // A proxy fetches it with its own credential.
    let got = door.get(&path, &door.proxy).await;
    assert_eq!((got.status, got.body.as_slice()), (200, &bytes[..]));
    assert_eq!(got.header("content-type"), Some("image/png"));
    assert_eq!(got.header("x-content-type-options"), Some("nosniff"));
    let disposition = got.header("content-disposition").unwrap();
    assert_eq!(disposition, "attachment; filename*=UTF-8''shot%20%C3%A4.png");

    let send =
        json!({ "content": "see", "attachments": [{ "attachment_id": told["attachment_id"] }] });
    let told = door.post("/v1/sessions/demo-1/messages", &door.operator, &send.to_string()).await;
    assert_eq!(told.status, 202);
}

// spec: native/http.4
#[tokio::test]
async fn a_form_is_taken_too() {
    let door = Knocked::new().await;
    let form = "--X\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\nhello\r\n\
        --X\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\
        content-type: text/plain\r\n\r\nwords\r\n--X--\r\n";

    let put = door.ask("POST", "/v1/uploads").bearer(&door.operator.token);
    let put = put.header("content-type", "multipart/form-data; boundary=X").body(form).send().await;

    assert_eq!(put.status, 201, "{}", put.text());
    let told = put.json();
    assert_eq!((&told["name"], &told["size"]), (&json!("a.txt"), &json!(5)));
    assert_eq!(told["media_type"], "text/plain");
}

#[tokio::test]
async fn a_file_at_the_limit_is_taken_and_one_byte_more_is_413_and_leaves_nothing() {
    const LIMIT: usize = 100_000;
    let door = Knocked::with(|config| config.limits.max_upload_bytes = LIMIT as u64).await;
    let put = |bytes: usize| {
        let put = door.ask("POST", "/v1/uploads?name=x").bearer(&door.operator.token);
        put.body(vec![7; bytes]).send()
    };

    assert_eq!(put(LIMIT).await.status, 201);
    assert_eq!(put(LIMIT + 1).await.error(), (413, "too_large".to_owned()));
    let mut form = b"--X\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\n".to_vec();
    form.extend(vec![7; LIMIT + 1]);
    form.extend(b"\r\n--X--\r\n");
    let form = door.ask("POST", "/v1/uploads").bearer(&door.operator.token).body(form);
    let told = form.header("content-type", "multipart/form-data; boundary=X").send().await;
    assert_eq!(told.error(), (413, "too_large".to_owned()));
    let left = std::fs::read_dir(door.folder.path().join("uploads")).unwrap().count();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn uploads_need_a_role_and_unknown_ones_are_404() {
    let door = Knocked::new().await;

    let refused = door.post("/v1/uploads?name=x", &door.viewer, "x").await;
    assert_eq!(refused.error(), (403, "unauthorized".to_owned()));
    let unknown = door.get("/v1/uploads/..%2Fowner.token", &door.owner).await;
    assert_eq!(unknown.error(), (404, "attachment_unknown".to_owned()));
}

#[tokio::test]
async fn the_index_is_read_again_and_leftovers_are_swept() {
    let door = Knocked::new().await;
    let put = door.post("/v1/uploads?name=kept", &door.operator, "kept").await.json();
    let folder = door.folder.path().join("uploads");
    std::fs::write(folder.join("upl_x.part"), "half").unwrap();

    let shelf = crate::Shelf::open(&folder, &door.auth).await.unwrap();

    let id = put["attachment_id"].as_str().unwrap().into();
    assert_eq!(shelf.find(&id).unwrap().name, "kept");
    assert!(!folder.join("upl_x.part").exists());
}

#[tokio::test]
async fn a_full_disk_is_507_and_the_same_file_is_taken_when_there_is_room_again() {
    let whole = Whole::new(wire::native::Limits::default()).await;
    let put = || {
        let put = whole.ask("POST", "/v1/uploads?name=a.txt", &whole.operator);
        put.header("content-type", "text/plain").body("words").send()
    };
    whole.disk.set_full(true);
    let told = put().await;
    assert_eq!(told.error(), (507, "disk_full".to_owned()), "{}", told.text());

    whole.disk.set_full(false);
    let told = put().await;
    assert_eq!(told.status, 201, "{}", told.text());
    let path = format!("/v1/uploads/{}", told.json()["attachment_id"].as_str().unwrap());
    let got = whole.ask("GET", &path, &whole.operator).send().await;
    assert_eq!((got.status, got.body.as_slice()), (200, &b"words"[..]));
}
