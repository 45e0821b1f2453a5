// Memory for kernels.
#include "easydel/kernels/memory.h"

#include <sys/mman.h>

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

}  // namespace easydel::kernels
