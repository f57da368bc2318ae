//! PaRSEC's converted traces, which are HDF5: any bytes are an answer that is sound, or an error with a place.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let faults = tq_engine::importers::examine::examine("ptt", bytes);
    assert!(faults.is_empty(), "{faults:#?}");
});
