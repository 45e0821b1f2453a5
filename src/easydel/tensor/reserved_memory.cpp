#include "easydel/tensor/reserved_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/base/text_table.h"

namespace easydel::tensor {

ReservedMemory::ReservedMemory(int64_t bytes) : bytes_(bytes) {
  check(bytes > 0, "reserved memory: ", bytes, " bytes");
  void* const at =
      mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    refuse("memory", str(bytes_text(uint64_t(bytes)), " of addresses cannot be reserved: ", std::strerror(errno)),
           "raise ulimit -v, or give the KV cache less memory");
  // Only a hint; small pages work as well.
  madvise(at, size_t(bytes), MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(at);
}

ReservedMemory::~ReservedMemory() { munmap(data_, size_t(bytes_)); }

void ReservedMemory::release(int64_t begin, int64_t count) {
  static const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t first = (begin + page - 1) / page * page, end = (begin + count) / page * page;
  if (first < end) madvise(data_ + first, size_t(end - first), MADV_DONTNEED);
}

}  // namespace easydel::tensor
