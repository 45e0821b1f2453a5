// Free memory from the files of a system that is written here.
#include "easydel/base/free_memory.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::test {
namespace {

class FreeMemoryTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) { write_file(root_ / path, text); }
  std::string least(std::optional<int64_t> address_space = std::nullopt) {
    const auto memory = free_memory(root_, address_space);
    return memory ? std::to_string(memory->bytes) + " " + memory->limit : "unknown";
  }
  TemporaryFolder folder_;
  std::filesystem::path root_ = folder_.path();
};

TEST_F(FreeMemoryTest, IsWhatTheMachineHas) {
  EXPECT_EQ(least(), "unknown");
  put("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    2000 kB\n");
  EXPECT_EQ(least(), "2048000 the machine");
}

TEST_F(FreeMemoryTest, IsWhatAControlGroupOfVersion2Leaves) {
  put("proc/meminfo", "MemAvailable: 2000 kB\n");
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/memory.current", "100\n");
  EXPECT_EQ(least(), "2048000 the machine");
  put("sys/fs/cgroup/a/memory.max", "1000000\n");
  put("sys/fs/cgroup/a/memory.current", "600000\n");
  EXPECT_EQ(least(), "400000 the control group") << "a parent's limit counts, too";
  put("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 50000\n");
  EXPECT_EQ(least(), "450000 the control group") << "file pages can be dropped";
  put("sys/fs/cgroup/a/memory.current", "2000000\n");
  EXPECT_EQ(least(), "0 the control group");
}

TEST_F(FreeMemoryTest, IsWhatAControlGroupOfVersion1Leaves) {
  put("proc/meminfo", "MemAvailable: 2000 kB\n");
  put("proc/self/cgroup", "5:cpu:/x\n4:hugetlb,memory:/c/d\n0::/\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");  // the container sees its own group as the root
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "300000\n");
  put("sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 1000\n");
  EXPECT_EQ(least(), "701000 the control group");
}

TEST_F(FreeMemoryTest, IsWhatIsLeftOfTheAddressSpace) {
  put("proc/meminfo", "MemAvailable: 2000 kB\n");
  put("proc/self/status", "Name: x\nVmPeak:\t 900 kB\nVmSize:\t     500 kB\n");
  EXPECT_EQ(least(1'000'000), "488000 ulimit -v");
  EXPECT_EQ(least(1000), "0 ulimit -v");
  EXPECT_EQ(least(int64_t(1) << 40), "2048000 the machine");
}

TEST(FreeMemory, OfThisMachineIsKnown) {
  const auto memory = free_memory();
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->bytes, 0);
}

}  // namespace
}  // namespace easydel::test
