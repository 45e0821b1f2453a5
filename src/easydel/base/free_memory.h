// How much memory this process can still take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace easydel {

struct FreeMemory {
  int64_t bytes = 0;
  std::string limit = {};  // what allows no more: "the machine", "the control group", "ulimit -v"
};

// The least of what the machine has free, what the control group (version 1 or 2) and its parents leave, and what
// `ulimit -v` leaves of the address space. File pages that the kernel can drop count as free. nullopt: unknown.
std::optional<FreeMemory> free_memory();

// The same from the files below `root` ("/" in a running system), with an address space of `address_space` bytes;
// nullopt: unlimited.
std::optional<FreeMemory> free_memory(const std::filesystem::path& root, std::optional<int64_t> address_space);

}  // namespace easydel
