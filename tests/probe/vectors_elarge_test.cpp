// Every recorded case of eLargeModel and of the registry passes, or differs on purpose.
#include <gtest/gtest.h>

#include <map>

#include "easydel/probe/vectors.h"
#include "support/data.h"

namespace easydel::probe {
namespace {

TEST(RecordedElarge, PassesOrDiffersOnPurpose) {
  const auto folder = test::shared_data("easydel_vectors");
  if (!folder) GTEST_SKIP() << "no shared data";
  for (const char* name :
       {"elarge_scalars", "elarge_normalize", "elarge_derived", "elarge_trainer", "elarge_runner", "registry_lookup"})
    for (const char* tag : {"v0201", "v0300"}) {
      const VectorFile file = read_vectors(*folder / (std::string(name) + "." + tag + ".json"));
      const VectorKind* const kind = find_vector_kind(name);
      ASSERT_NE(kind, nullptr) << name;
      std::map<Outcome, int> counts;
      for (const VectorCase& vector : cases_of(file, kind)) {
        const Answered answered = answer(vector, file, kind);
        ++counts[answered.outcome];
        EXPECT_NE(answered.outcome, Outcome::failed)
            << name << " " << tag << " " << answered.id << ": " << answered.why;
      }
      EXPECT_GT(counts[Outcome::passed], counts[Outcome::differs]) << name << " " << tag;
    }
}

// Every setter takes a mapping as its first argument as it takes keywords, and no more positions than it has.
TEST(RecordedElarge, SettersTakeAMappingAsTheyTakeKeywords) {
  const VectorKind* const kind = find_vector_kind("elarge_api");
  ASSERT_NE(kind, nullptr);
  const auto answer_to = [&](const std::string& call) {
    Value body = Value::map();
    body.set("desc", Value::text(call));
    return to_json(kind->answer({"a", body}, {"elarge_api.json", Value::map()}));
  };
  for (const auto& [mapping, keywords] :
       {std::pair{"set_eval({'max_new_tokens': 5})", "set_eval(max_new_tokens=5)"},
        {"set_esurge({'page_size': 64})", "set_esurge(page_size=64)"},
        {"set_mixture({'pack_tokens': True})", "set_mixture(pack_tokens=True)"},
        {"set_sharding({'axis_dims': [1,1,1,1,1]})", "set_sharding(axis_dims=(1,1,1,1,1))"},
        {"set_operation_configs({'attn_mechanism': 'flash'})", "set_operation_configs(attn_mechanism='flash')"},
        // A keyword wins over the mapping.
        {"set_eval({'max_new_tokens': 5}, max_new_tokens=6)", "set_eval(max_new_tokens=6)"},
        {"set_quantization('nf4', 32)", "set_quantization('nf4', group_size=32)"}})
    EXPECT_EQ(answer_to(mapping), answer_to(keywords)) << mapping;
  EXPECT_NE(answer_to("set_eval({'max_new_tokens': 5})"), answer_to("set_eval()"));
  EXPECT_EQ(test::refusal([&] { answer_to("set_eval({}, 5)"); }),
            "set_eval: 2 positional arguments are given, and it takes 1\n    give the others by name");
  EXPECT_EQ(test::refusal([&] { answer_to("set_trainer('sft', 5)"); }),
            "set_trainer: 2 positional arguments are given, and it takes 1\n    give the others by name");
  EXPECT_EQ(test::refusal([&] { answer_to("set_esurge(5)"); }),
            "set_esurge: the first argument is not a mapping\n    give keys by name, or a mapping");
}

TEST(RecordedElarge, CommandLinesDoWhatWasRecorded) {
  const auto folder = test::shared_data("easydel_vectors");
  if (!folder) GTEST_SKIP() << "no shared data";
  for (const char* tag : {"v0201", "v0300"}) {
    const auto ran =
        test::run_program({"probe", "vectors", (*folder / str("elarge_cli.", tag, ".json")).string(), "--check"});
    EXPECT_EQ(ran.status, 0) << ran.out;
  }
}

}  // namespace
}  // namespace easydel::probe
