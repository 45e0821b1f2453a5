// Aligned memory for kernels: packed weights, and scratch memory that a thread keeps between calls.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace easydel::kernels {

struct FreeAligned {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using Buffer = std::unique_ptr<T[], FreeAligned>;

void* allocate_bytes(int64_t bytes);  // 64-byte aligned; huge pages from 1 MiB; not cleared; throws std::bad_alloc

template <class T>
Buffer<T> allocate(int64_t count) {
  return Buffer<T>(static_cast<T*>(allocate_bytes(count * int64_t(sizeof(T)))));
}

// The same for many blocks below 1 MiB that are read one after the other: they share huge pages, each of which is freed
// with its last block.
std::shared_ptr<uint8_t> allocate_block(int64_t bytes);

// Memory that only grows; growing discards its contents.
template <class T>
class Scratch {
 public:
  T* at_least(int64_t count) {
    if (count > size_) data_.reset(), data_ = allocate<T>(count), size_ = count;
    return data_.get();
  }

 private:
  Buffer<T> data_;
  int64_t size_ = 0;
};

}  // namespace easydel::kernels
