#include "easydel/tensor/memory.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace easydel::tensor {
namespace {

constexpr size_t min_large_bytes = size_t{256} << 10;  // malloc is good below this size
constexpr size_t huge_page_bytes = size_t{2} << 20;
constexpr size_t spare_bytes = size_t{32} << 20;  // for pieces too small for the next tensor
constexpr size_t max_areas = 16384;               // 32 GiB of huge pages
constexpr size_t alignment = 64;                  // as in libtorch

// Memory from the system, in huge pages if they are available.
char* map_pages(size_t bytes) {
  // Allocates more than requested, and trims to a boundary of huge pages.
  const size_t slack = bytes >= huge_page_bytes ? huge_page_bytes : 0;
  void* raw = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  if (!slack) return static_cast<char*>(raw);
  char* const begin = static_cast<char*>(raw);
  char* const block = begin + (huge_page_bytes - reinterpret_cast<uintptr_t>(raw) % huge_page_bytes) % huge_page_bytes;
  if (block != begin) munmap(begin, size_t(block - begin));
  if (const size_t tail = slack - size_t(block - begin)) munmap(block + bytes, tail);
  madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

// New blocks. Blocks smaller than a region are allocated one after the other, so that they share huge pages; memory
// that was not handed out yet is not backed by pages.
class Fresh {
 public:
  void* take(size_t bytes) {
    if (bytes > region_bytes / 2) return map_pages(bytes);
    if (left_ < bytes) {
      char* const region = map_pages(region_bytes);
      if (!region) return map_pages(bytes);
      if (left_ > 0) munmap(next_, left_);
      next_ = region, left_ = region_bytes;
    }
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }

 private:
  static constexpr size_t region_bytes = size_t{32} << 20;
  char* next_ = nullptr;
  size_t left_ = 0;
};

// Free ranges by address, to merge adjacent ones, and by size.
class Blocks {
 public:
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    use_.in_use += bytes;
    if (use_.in_use > use_.peak) use_.peak = use_.in_use;
    // Tried in order: a free range of exactly this size; fresh pages within the limit; a part of a larger range; pages
    // of several ranges, remapped contiguously; the memory of the oldest ranges.
    const auto fits = by_size_.lower_bound({bytes, nullptr});
    void* block = nullptr;
    if (fits != by_size_.end() && (fits->first == bytes || use_.in_use + use_.kept > use_.peak)) {
      block = cut(fits->second, bytes);
    } else if (bytes < 2 * huge_page_bytes || use_.in_use + use_.kept <= use_.peak || !(block = gathered(bytes))) {
      // Pieces between small tensors are kept for the next round, which would otherwise pay for fresh pages each time.
      const size_t most = use_.peak + (bytes < 2 * huge_page_bytes ? spare_bytes : 0);
      while (!free_.empty() && use_.in_use + use_.kept > most) drop_oldest(use_.in_use + use_.kept - most);
      block = fresh_.take(bytes);
      while (!block && !free_.empty()) {
        drop_oldest(bytes);
        block = fresh_.take(bytes);
      }
      if (!block) {
        use_.in_use -= bytes;
        return nullptr;
      }
    }
    size_of_[block] = bytes;
    return block;
  }

  // The size of the block, 0 if it is not from here.
  size_t give_back(void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = size_of_.find(block);
    if (found == size_of_.end()) return 0;
    const size_t own = found->second;
    size_t bytes = own;
    size_of_.erase(found);
    use_.in_use -= bytes, use_.kept += bytes;
    char* begin = static_cast<char*>(block);
    const auto next = free_.lower_bound(begin);
    if (next != free_.end() && next->first == begin + bytes) bytes += remove(next);
    if (const auto after = free_.lower_bound(begin); after != free_.begin())
      if (const auto before = std::prev(after); before->first + before->second.bytes == begin) {
        begin = before->first;
        bytes += remove(before);
      }
    add(begin, bytes, ++clock_);
    return own;
  }

  MemoryUse use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }

 private:
  struct Range {
    size_t bytes;
    uint64_t since;
  };
  using Free = std::map<char*, Range>;

  void add(char* begin, size_t bytes, uint64_t since) {
    free_.emplace(begin, Range{bytes, since});
    by_size_.insert({bytes, begin});
  }
  size_t remove(Free::iterator range) {
    const size_t bytes = range->second.bytes;
    by_size_.erase({bytes, range->first});
    free_.erase(range);
    return bytes;
  }
  // Takes the beginning of a free range; the rest stays free.
  void* cut(char* begin, size_t bytes) {
    const auto range = free_.find(begin);
    const uint64_t since = range->second.since;
    const size_t all = remove(range);
    if (all > bytes) add(begin + bytes, all - bytes, since);
    use_.kept -= bytes;
    return begin;
  }
  // Remaps huge pages of free ranges contiguously, which changes only addresses: nothing is cleared, as fresh pages
  // would be. Null if the free ranges do not hold most of it.
  void* gathered(size_t bytes) {
    // Each page may become a mapping of its own, and the system allows 65,530 of them per process.
    if ((use_.in_use + use_.kept) / huge_page_bytes > max_areas) return nullptr;
    const size_t pages = bytes / huge_page_bytes;
    std::vector<char*> found;
    for (auto range = free_.begin(); range != free_.end() && found.size() < pages; ++range) {
      char* const end = range->first + range->second.bytes;
      char* page = range->first +
                   (huge_page_bytes - reinterpret_cast<uintptr_t>(range->first) % huge_page_bytes) % huge_page_bytes;
      for (; page + huge_page_bytes <= end && found.size() < pages; page += huge_page_bytes) found.push_back(page);
    }
    if (found.size() * 2 < pages) return nullptr;
    char* const block = map_pages(bytes);
    if (!block) return nullptr;
    char* to = block;
    for (char* const page : found) {
      // One at a time, because the pages of one range may belong to several mappings.
      if (mremap(page, huge_page_bytes, huge_page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
        // The system may have unmapped the memory at `to`.
        constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        if (mmap(to, size_t(block + bytes - to), PROT_READ | PROT_WRITE, how, -1, 0) != MAP_FAILED) break;
        munmap(block, bytes);
        return nullptr;
      }
      to += huge_page_bytes;
      const auto range = std::prev(free_.upper_bound(page));
      char* const begin = range->first;
      const uint64_t since = range->second.since;
      const size_t all = remove(range), before = size_t(page - begin), behind = all - before - huge_page_bytes;
      if (before > 0) add(begin, before, since);
      if (behind > 0) add(page + huge_page_bytes, behind, since);
      use_.kept -= huge_page_bytes;
    }
    while (!free_.empty() && use_.in_use + use_.kept > use_.peak) drop_oldest(use_.in_use + use_.kept - use_.peak);
    return block;
  }
  // Frees at least `wanted` bytes of the oldest range, or all of it.
  void drop_oldest(size_t wanted) {
    auto oldest = free_.begin();
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (it->second.since < oldest->second.since) oldest = it;
    const size_t whole = (wanted + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    char* const begin = oldest->first;
    const size_t bytes = std::min(whole, oldest->second.bytes);
    munmap(cut(begin, bytes), bytes);
  }

  std::mutex mutex_;
  Fresh fresh_;
  Free free_;
  std::set<std::pair<size_t, char*>> by_size_;
  std::unordered_map<void*, size_t> size_of_;  // blocks in use
  MemoryUse use_;
  uint64_t clock_ = 0;
};

Blocks& blocks() {
  static Blocks* const one = new Blocks;  // outlives every tensor
  return *one;
}

// What a PeakWatch counts. Blocks of before that are released meanwhile count below zero.
std::atomic<bool> watched = false;
std::atomic<int64_t> watched_bytes = 0, watched_peak = 0;

void count(int64_t bytes) {
  const int64_t now = watched_bytes += bytes;
  int64_t peak = watched_peak;
  while (now > peak && !watched_peak.compare_exchange_weak(peak, now)) {
  }
}

void release(void* block) {
  if (!block) return;
  const size_t large = blocks().give_back(block);
  if (watched) count(-int64_t(large ? large : malloc_usable_size(block)));
  if (!large) std::free(block);
}

class KeptMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* block = nullptr;
    if (bytes >= min_large_bytes) {
      block = blocks().take(block_bytes(bytes));
    } else if (bytes > 0) {
      if (posix_memalign(&block, alignment, bytes) != 0) block = nullptr;
    }
    if (bytes > 0 && !block) throw std::bad_alloc();
    if (watched && block) count(int64_t(bytes >= min_large_bytes ? block_bytes(bytes) : malloc_usable_size(block)));
    return {block, block, &release, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

KeptMemory& kept_memory() {
  static KeptMemory* const one = new KeptMemory;  // outlives every tensor
  return *one;
}

}  // namespace

size_t block_bytes(size_t bytes) {
  const size_t step = std::max<size_t>(std::bit_floor(bytes) / 8, 4096);
  return (bytes + step - 1) / step * step;
}

void use_kept_memory() { c10::SetCPUAllocator(&kept_memory(), /*priority=*/1); }
bool kept_memory_is_used() { return c10::GetCPUAllocator() == &kept_memory(); }

PeakWatch::PeakWatch() { watched_bytes = watched_peak = 0, watched = true; }
PeakWatch::~PeakWatch() { watched = false; }
int64_t PeakWatch::bytes() const { return watched_peak; }

MemoryUse memory_use() { return blocks().use(); }

}  // namespace easydel::tensor
