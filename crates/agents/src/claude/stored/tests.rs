use super::*;

const RECORD: &str = r#"{"type":"queue-operation","operation":"enqueue","sessionId":"c1"}
{"type":"user","uuid":"u0","isMeta":true,"message":{"role":"user","content":"Caveat"},"cwd":"/w"}
{"type":"user","uuid":"u1","timestamp":"1970-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"make  a\nfolder"}]},"cwd":"/w"}
{"type":"assistant","uuid":"a1","timestamp":"1970-01-01T00:00:02.000Z","message":{"id":"m1","content":[{"type":"thinking","thinking":"hm"}]}}
{"type":"assistant","uuid":"a2","message":{"id":"m1","content":[{"type":"text","text":"I will."}]}}
{"type":"assistant","uuid":"a3","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"mkdir d"}}]}}
{"type":"user","uuid":"u2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"made","is_error":false}]}}
{"type":"user","uuid":"u1","message":{"role":"user","content":[{"type":"text","text":"make  a\nfolder"}]}}
{"type":"user","uuid":"u3","message":{"role":"user","content":"[Request interrupted by user]"}}
{"type":"user","uuid":"s1","isSidechain":true,"message":{"role":"user","content":"aside"}}
{"type":"attachment","uuid":"x1","attachment":{"type":"queued_command","source_uuid":"u4","prompt":[{"type":"text","text":"and another"}]}}
{"type":"assistant","uuid":"f1","message":{"id":"filler","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}
not json
"#;

fn texts(entries: &[Piece]) -> Vec<String> {
    let text = |entry: &Piece| match entry {
        Piece::Message(message, drawings) => {
            let (parts, count) = (message.parts.open().unwrap(), drawings.len());
            let shown = if count > 0 { format!(" and {drawings:?}") } else { String::new() };
            format!("{} {parts:?}{shown}", message.id)
        }
        Piece::Tool(call) => {
            let output = call.detail.open().unwrap().output.clone();
            format!("{} {:?} {}", call.id, call.status, output.unwrap_or_default())
        }
    };
    entries.iter().map(text).collect()
}

#[test]
fn a_conversation_is_read_in_order_and_every_line_once() {
    let entries = entries(RECORD);
    let expected = [
        "u1 [Text(\"make  a\\nfolder\")]",
        "m1 [Thinking(\"hm\"), Text(\"I will.\"), ToolCall(\"t1\")]",
        "t1 Completed made",
        "u4 [Text(\"and another\")]",
    ];
    assert_eq!(texts(&entries), expected);
    let Piece::Message(first, _) = &entries[0] else { panic!() };
    assert_eq!(first.created_at, Timestamp(1_000));
}

#[test]
fn a_title_is_given_or_else_the_first_words() {
    let told = summary("c1.jsonl", RECORD).unwrap();
    assert_eq!(told.id, "c1");
    assert_eq!(told.title.as_deref(), Some("make a folder"));
    assert_eq!(told.workspace.as_deref(), Some("/w"));
    let named =
        format!("{RECORD}{}\n", r#"{"type":"summary","summary":"Folders","leafUuid":"a3"}"#);
    assert_eq!(summary("c1.jsonl", &named).unwrap().title.as_deref(), Some("Folders"));
    assert_eq!(summary("c1.jsonl", r#"{"type":"mode","mode":"normal"}"#), None);
}

#[test]
fn pictures_stand_where_they_were_shown() {
    const SHOWN: &str = r#"{"type":"user","uuid":"u1","message":{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}]},"cwd":"/w"}
{"type":"user","uuid":"u2","message":{"content":[{"type":"text","text":"and this"},{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}]}}
{"type":"assistant","uuid":"a1","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/w/a.png"}}]}}
{"type":"user","uuid":"u3","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"QUI="}}]}]}}
"#;
    let expected = [
        "u1 [] and [Drawing(picture, image/png, 4 characters)]",
        "u2 [Text(\"and this\\n[image: https://example.org/a.png]\")]",
        "m1 [ToolCall(\"t1\")]",
        "t1 Completed [image]",
        "t1-pictures [] and [Drawing(Read, image/jpeg, 4 characters)]",
    ];
    assert_eq!(texts(&entries(SHOWN)), expected);
    assert_eq!(summary("c1.jsonl", SHOWN).unwrap().title.as_deref(), Some("[image]"));
}
