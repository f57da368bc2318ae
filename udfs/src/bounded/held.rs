//! Arrays that keep what was asked of the memory pool for them, as long as they live.
//!
//! What a function made waits in the operator above it: in a sort, a group, a filter's output. That memory is there until the last of them
//! lets go of it, so the reservation lives in the array's own buffers.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use bytes::Bytes;
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;

/// The array, which gives the reservation back when it is dropped, with all that share its buffers.
pub(super) fn held(array: &ArrayRef, memory: MemoryReservation) -> Result<ArrayRef> {
    Ok(make_array(with_owner(array.to_data(), &Arc::new(memory))?))
}

fn with_owner(data: ArrayData, memory: &Arc<MemoryReservation>) -> Result<ArrayData> {
    let own = |buffer: &Buffer| {
        Buffer::from(Bytes::from_owner(Owned { buffer: buffer.clone(), _memory: Arc::clone(memory) }))
    };
    let buffers = data.buffers().iter().map(own).collect();
    let children = data.child_data().iter().map(|child| with_owner(child.clone(), memory));
    let children = children.collect::<Result<_>>()?;
    Ok(data.into_builder().buffers(buffers).child_data(children).build()?)
}

struct Owned {
    buffer: Buffer,
    _memory: Arc<MemoryReservation>,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int64Type;
    use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use super::*;

    #[test]
    fn memory_comes_back_with_the_last_slice() {
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
        let arrays: [ArrayRef; 3] = [
            Arc::new(StringArray::from(vec![Some("a"), None, Some("ä")])),
            Arc::new(lists),
            Arc::new(Int64Array::from(vec![1, 2, 3])),
        ];
        for array in arrays {
            let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
            let memory = MemoryConsumer::new("texts").register(&pool);
            memory.try_grow(700).unwrap();
            let of_pool = held(&array, memory).unwrap();
            assert_eq!(&of_pool, &array);
            let last = of_pool.slice(2, 1);
            drop(of_pool);
            assert_eq!(pool.reserved(), 700);
            drop(last);
            assert_eq!(pool.reserved(), 0);
        }
    }
}
