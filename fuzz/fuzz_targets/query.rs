//! Saved queries, header and statement: whatever the text is, it becomes a plan, or an error in words.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let faults = tq_engine::importers::examine::examine("query", bytes);
    assert!(faults.is_empty(), "{faults:#?}");
});
