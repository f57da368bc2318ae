//! Which GPU kernels are collective operations (all-reduce, broadcast …): only their names tell.

/// What names of collective kernels hold, in any case: NVIDIA's and AMD's libraries, and the all-reduce of inference engines
/// (vLLM, SGLang) that goes without them, as TraceLens has it; and those of PyTorch's symmetric memory (`CUDASymmetricMemoryOps.cu`).
const WORDS: [&[u8]; 5] =
    [b"nccl", b"rccl", b"cross_device_reduce", b"all_reduce_kernel", b"multimem_all_gather_kernel"];

/// Whether a kernel of this name moves data between devices.
pub(super) fn is_collective(name: &str) -> bool {
    let holds = |word: &[u8]| name.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    WORDS.into_iter().any(holds)
}

#[cfg(test)]
mod tests {
    use super::is_collective;

    #[test]
    fn collectives_are_told_by_their_names() {
        let collectives = [
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)",
            "void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)",
            "void RcclGenericKernel<2>()",
            "void c10d::symmetric_memory::multimem_one_shot_all_reduce_kernel<float, 16>(float*, float*)",
            "void vllm::cross_device_reduce_1stage<__hip_bfloat16, 8>(RankData*, int)",
        ];
        assert!(collectives.into_iter().all(is_collective));
        assert!(["Memcpy HtoD", "reduce_kernel", "ncc", ""].into_iter().all(|name| !is_collective(name)));
    }
}
