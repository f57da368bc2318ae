//! Exports of Nsight Systems: whatever the bytes are, reading them gives sound tables, or an error that names the place.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let faults = tq_engine::importers::examine::examine("nsys", bytes);
    assert!(faults.is_empty(), "{faults:#?}");
});
