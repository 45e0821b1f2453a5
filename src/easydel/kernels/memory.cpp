// Memory for kernels.
#include "easydel/kernels/memory.h"

#include <sys/mman.h>

#include <mutex>
#include <new>

namespace easydel::kernels {

void* allocate_bytes(int64_t bytes) {
  constexpr size_t huge_page = 2u << 20;
  const size_t min_bytes = size_t(bytes) + 64, align = min_bytes >= huge_page / 2 ? huge_page : 64;
  const size_t size = (min_bytes + align - 1) / align * align;
  void* const p = std::aligned_alloc(align, size);
  if (!p) throw std::bad_alloc();
  if (align < huge_page) return p;
  // The end of a large block has small pages if a huge one would leave much of it unused: there are models of thousands
  // of blocks.
  const bool wasteful = size > huge_page && (size - min_bytes) * 64 > size;
  madvise(p, wasteful ? size - huge_page : size, MADV_HUGEPAGE);
  return p;
}

std::shared_ptr<uint8_t> allocate_block(int64_t bytes) {
  constexpr int64_t huge_page = 2 << 20, usable = huge_page - 64, line = 64;
  const int64_t size = (bytes + line - 1) / line * line;
  if (2 * size > usable) return {allocate<uint8_t>(size).release(), FreeAligned()};
  static std::mutex mutex;
  static std::weak_ptr<uint8_t> last;  // the page that blocks are taken from
  static int64_t used = 0;
  const std::lock_guard lock(mutex);
  std::shared_ptr<uint8_t> page = last.lock();
  if (!page || used + size > usable) {
    page = {allocate<uint8_t>(usable).release(), FreeAligned()};
    last = page, used = 0;
  }
  uint8_t* const block = page.get() + used;
  used += size;
  return {page, block};
}

}  // namespace easydel::kernels
