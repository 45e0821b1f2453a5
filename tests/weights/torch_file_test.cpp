// Files of torch.save: files that torch wrote, and malicious ones.
#include "easydel/weights/torch_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "easydel/weights/folder.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::weights {
namespace {

void expect_equal(const std::string& bin) {
  SCOPED_TRACE(bin);
  const auto found = TorchFile::open(test::test_data("weights/" + bin));
  const auto right = SafetensorsFile::open(test::test_data("weights/torch.safetensors"));
  EXPECT_GE(found->names().size(), 16u);
  for (const std::string& name : found->names()) {
    const TensorView a = found->at(name), b = right->at(name);
    EXPECT_EQ(a.dtype, b.dtype) << name;
    EXPECT_EQ(a.shape, b.shape) << name;
    EXPECT_TRUE(std::ranges::equal(a.bytes, b.bytes)) << name;
    EXPECT_EQ(found->info(name).shape, b.shape) << name;
  }
}

TEST(TorchFile, ReadsWhatTorchWrites) {
  expect_equal("torch_zip.bin");
  EXPECT_EQ(TorchFile::open(test::test_data("weights/torch_zip.bin"))->names().size(),
            SafetensorsFile::open(test::test_data("weights/torch.safetensors"))->names().size());
}

TEST(TorchFile, ReadsTheFormWithoutZip) { expect_equal("torch_old.bin"); }

TEST(TorchFile, ComesInShardsWithAnIndex) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "pytorch_model-00001-of-00002.bin",
                   test::read_file(test::test_data("weights/torch_zip.bin")));
  std::string index;
  for (const std::string& name : TorchFile::open(test::test_data("weights/torch_zip.bin"))->names())
    index += str(index.empty() ? "" : ", ", '"', name, "\": \"pytorch_model-00001-of-00002.bin\"");
  test::write_file(folder / "pytorch_model.bin.index.json", "{\"weight_map\": {" + index + "}}");
  EXPECT_EQ(Folder::open(folder.path()).at("i64").shape, (std::vector<int64_t>{3}));
  test::write_file(folder / "pytorch_model.bin.index.json",
                   "{\"weight_map\": {" + index + ", \"other\": \"pytorch_model-00002-of-00002.bin\"}}");
  EXPECT_EQ(test::refusal([&] { Folder::open(folder.path()); }),
            (folder / "pytorch_model-00002-of-00002.bin").string() +
                ": is missing; pytorch_model.bin.index.json names it\n    fetch the model again");
}

std::string refused(const std::string& bytes) {
  return test::refusal([&] { TorchFile(std::as_bytes(std::span(bytes)), "x.bin"); });
}

// The older form around an object's pickle: without storages.
std::string old_file(const std::string& object) {
  const std::string magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15),
      protocol("\x80\x02M\xe9\x03.", 6);
  return magic + protocol + std::string("\x80\x02}.", 4) + "\x80\x02" + object + "\x80\x02].";
}

constexpr const char* untrusted =
    "\n    do not load this file with other programs if you do not trust it; save the model as safetensors";
constexpr const char* again = "\n    the file is damaged or was not written by torch.save; fetch or save it again";

TEST(TorchFile, RunsNothing) {
  using namespace std::string_literals;
  EXPECT_EQ(refused(old_file("cposix\nsystem\nX\x04\x00\x00\x00true\x85R."s)),
            "x.bin: its pickle asks for 'posix.system', which is not part of a tensor; nothing was run" +
                std::string(untrusted));
  EXPECT_EQ(refused(old_file("\x8c\x08"s + "builtins\x8c\x04" + "eval\x93."s)),
            "x.bin: its pickle asks for 'builtins.eval', which is not part of a tensor; nothing was run" +
                std::string(untrusted));
  EXPECT_EQ(refused(old_file("ctorch._utils\n_rebuild_tensor_v2\n)R."s)),
            "x.bin: builds a tensor in an unknown way at byte 62 of its pickle" + std::string(again));
  // Opcodes that import or build by themselves: INST, OBJ, EXT1, PERSID.
  for (const char opcode : {'i', 'o', '\x82', 'P'})
    EXPECT_EQ(refused(old_file("("s + opcode)),
              "x.bin: its pickle has the opcode " + std::to_string(int(uint8_t(opcode))) +
                  " at byte 28, which no tensor needs\n    save the model as safetensors");
}

TEST(TorchFile, RefusesPicklesThatAreNone) {
  using namespace std::string_literals;
  EXPECT_EQ(refused(old_file("R."s)), "x.bin: has nothing to work on at byte 28 of its pickle" + std::string(again));
  EXPECT_EQ(refused(old_file("h\x07."s)),
            "x.bin: recalls what it did not keep at byte 29 of its pickle" + std::string(again));
  EXPECT_EQ(refused(old_file("X\xff\xff\xff\xff"s)),
            "x.bin: is truncated at byte 32 of its pickle" + std::string(again));
  EXPECT_EQ(refused(old_file("t."s)), "x.bin: has no mark at byte 28 of its pickle" + std::string(again));
  EXPECT_EQ(refused(old_file("K\x01."s)),
            "x.bin: does not hold a dictionary of tensors\n    save the model as safetensors");
  EXPECT_EQ(refused(old_file("}X\x01\x00\x00\x00wK\x01s."s)),
            "x.bin: its entry 'w' is not a tensor\n    save the model's state_dict() alone");
  // A list that contains itself.
  EXPECT_EQ(refused(old_file("]q\x00h\x00"s + "a."s)),
            "x.bin: does not hold a dictionary of tensors\n    save the model as safetensors");
  EXPECT_EQ(refused("none of it"), "x.bin: is not a file of torch.save" + std::string(again));
}

// A storage of `elements` floats, and one tensor in it.
std::string one_tensor(const std::string& offset, const std::string& shape, const std::string& stride,
                       const std::string& storage) {
  using namespace std::string_literals;
  const std::string object =
      "}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00"s +
      "0X\x03\x00\x00\x00"s + "cpuK\x04NtQ"s + offset + shape + stride + "\x89}tRs."s;
  std::string file = old_file(object);
  file.resize(file.size() - 1);  // the list of keys: one
  return file + "X\x01\x00\x00\x00"s + "0a.\x04\x00\x00\x00\x00\x00\x00\x00"s + storage;
}

// A few bytes that copy a memoized list again and again: memory must not grow with the number of copies.
TEST(TorchFile, CopiesNoListWithoutEnd) {
  using namespace std::string_literals;
  std::string pickle = "NN\x86q\x01\x30]("s, copy = "h\x03h\x02\x85R0"s;
  for (int i = 0; i < 4096; ++i) pickle += "h\x01"s;
  pickle +=
      "eq\x02\x30"
      "ccollections\nOrderedDict\nq\x03\x30"s;
  for (int i = 0; i < 1100; ++i) pickle += copy;
  EXPECT_EQ(refused(old_file(pickle + "}.")),
            "x.bin: copies more than 4194304 entries in its pickle\n    save the model as safetensors");
}

TEST(TorchFile, HoldsEveryTensorAgainstItsStorage) {
  using namespace std::string_literals;
  const std::string floats(16, '\0');
  const std::string bytes = one_tensor("K\x00"s, "K\x04\x85", "K\x01\x85", floats);
  EXPECT_EQ(TorchFile(std::as_bytes(std::span(bytes)), "x.bin").at("w").bytes.size(), 16u);
  const std::string beyond = "x.bin: tensor 'w' reaches beyond its storage" + std::string(again);
  EXPECT_EQ(refused(one_tensor("K\x01", "K\x04\x85", "K\x01\x85", floats)), beyond);
  EXPECT_EQ(refused(one_tensor("K\x00"s, "K\x02\x85", "K\x04\x85", floats)), beyond);
  EXPECT_EQ(refused(one_tensor("K\x00"s, "K\x05\x85", "K\x00\x85"s, floats)), beyond);
  EXPECT_EQ(refused(one_tensor("K\x00"s, "K\x02\x85", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85", floats)), beyond);
  EXPECT_EQ(
      refused(one_tensor("K\x00"s, "J\xff\xff\xff\xff\x85", "K\x01\x85", floats)).find("has a shape that is none"), 7u);
  EXPECT_EQ(refused(one_tensor("K\x00"s, "K\x04\x85", "K\x01\x85", floats.substr(1))),
            "x.bin: is truncated in its storages" + std::string(again));
}

TEST(TorchFile, ChecksTheArchive) {
  const std::string good = test::read_file(test::test_data("weights/torch_zip.bin"));
  const auto changed = [&](size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return refused(bytes);
  };
  constexpr const char* damaged = "\n    the file is damaged; fetch or save it again";
  const size_t entry = good.find("PK\x01\x02"), end = good.rfind("PK\x05\x06");
  EXPECT_EQ(changed(entry + 10, 8),
            "x.bin: the member 'torch_zip/data.pkl' is compressed; torch.save does not do that\n    save it again with "
            "torch.save");
  EXPECT_EQ(changed(entry + 8, 9), "x.bin: the member 'torch_zip/data.pkl' is encrypted" + std::string(damaged));
  EXPECT_EQ(changed(entry + 45, 0x7f), "x.bin: has a member that reaches beyond its end" + std::string(damaged));
  EXPECT_EQ(changed(end, 'Q'), "x.bin: has no directory at its end" + std::string(damaged));
  // Changing any byte of it, or cutting it off anywhere, leads to a refusal at worst.
  for (size_t at = 0; at < good.size(); at += 3) changed(at, static_cast<char>(good[at] ^ 0x41));
  for (size_t size = 0; size < good.size(); size += 11)
    EXPECT_NE(refused(good.substr(0, size)), "(nothing was refused)") << size;
}

}  // namespace
}  // namespace easydel::weights
