// Adapters of requests: the same bits alone and beside others, as a model has that was loaded with the adapter, while
// adapters come, are replaced and go.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/esurge/engine.h"
#include "easydel/models/adapter.h"
#include "esurge/same_bits.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

namespace fs = std::filesystem;

class RequestAdapters : public SameBits {
 protected:
  void SetUp() override {
    SameBits::SetUp();
    write("one", "{r: 3, alpha: 8, init: random}", 1);
    write("other", "{r: 2, init: random, use_dora: true}", 2);
    write("zeros", "{r: 4}", 3);
  }

  std::shared_ptr<models::Model> loaded(const std::vector<models::AdapterOptions>& adapters) const {
    models::LoadOptions options;
    options.dtype = models::dtype_setting(GetParam().dtype, "dtype");
    options.adapters = adapters;
    if (GetParam().folder.starts_with("hf_goldens")) {
      options.overrides = Value::map();
      options.overrides.set("max_position_embeddings", Value::integer(512));
    }
    return models::load_model(test::test_data(GetParam().folder), options);
  }
  void write(const char* name, const char* yaml, uint64_t seed) const {
    models::AdapterOptions options;
    config::read(parse_yaml(yaml), options.config, "lora").throw_if_any();
    options.seed = seed;
    const auto made = loaded({options});
    models::save_adapter(*made, *made->adapters().front(), work_ / name, "base");
  }
  EngineSetup own_setup(int64_t page_size, std::optional<int64_t> pages) const {
    EngineSetup out = setup(page_size, pages);
    out.model = loaded({});
    return out;
  }

  test::TemporaryFolder work_;
};

TEST_P(RequestAdapters, HaveTheBitsOfAModelThatIsLoadedWithThemInEveryCompany) {
  Random random(3);
  std::vector<Request> all = requests(random, 14);
  std::vector<std::string> expected;
  const std::vector<std::string> base = alone(all);
  std::map<std::string, std::vector<std::string>> with;
  for (const char* name : {"one", "other"}) {
    EngineSetup own = setup(128, 64);
    own.config.enable_prefix_caching = false;
    own.model = loaded({models::adapter_in(work_ / name)});
    StepEngine engine(own);
    for (const Request& request : all) with[name].push_back(answers(engine, {request}).front());
  }
  with["zeros"] = base;
  int64_t changed = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const char* const name = std::array<const char*, 4>{"", "one", "other", "zeros"}[i % 4];
    if (*name) all[i].sampling.adapter = name;
    expected.push_back(*name ? with[name][i] : base[i]);
    changed += expected[i] != base[i];
  }
  EXPECT_GT(changed, 3);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    EngineSetup own = own_setup(std::array{16, 1, 100, 16}[seed - 1], 40);
    if (own.config.page_size == 1) own.pages = 600;
    own.config.max_num_batched_tokens = random.from(5, 120);
    own.config.num_speculative_tokens = seed % 2 == 1 ? 3 : 0;
    own.config.prompt_lookup_min = 1;
    StepEngine engine(own);
    for (const char* name : {"one", "other", "zeros"}) engine.load_adapter(name, work_ / name);
    std::vector<std::string> found(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      engine.add(all[i], [&found, i](const RequestOutput& output) { found[i] = bits_of(output); });
      if (random.chance(50)) engine.step();
    }
    while (engine.step()) {
    }
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(found[i], expected[i]) << "schedule " << seed << ", request " << i;
    // What the other adapters have cached is not theirs.
    EXPECT_EQ(answers(engine, all), expected) << "schedule " << seed << ", once more";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RequestAdapters, testing::ValuesIn([] {
                           std::vector<Subject> out;
                           for (const Subject& subject : subjects())
                             for (const char* name : {"story_fp32", "deepseek_v3_mla", "qwen3_next_hybrid"})
                               if (subject.name == name) out.push_back(subject);
                           return out;
                         }()),
                         [](const auto& info) { return info.param.name; });

class AdaptersOfAnEngine : public RequestAdapters {};

TEST_P(AdaptersOfAnEngine, KeepTheVersionThatARequestBeganWith) {
  EngineSetup own = own_setup(16, 64);
  own.fingerprint = "fp";
  StepEngine engine(own);
  Request request;
  request.prompt = "Once upon a time";
  request.sampling.temperature = 0, request.sampling.max_tokens = 20, request.sampling.logprobs = 0;
  std::map<std::string, RequestOutput> alone;
  const auto answer = [&](const char* adapter) {
    request.sampling.adapter = adapter;
    RequestOutput last;
    engine.add(request, [&](RequestOutput output) { last = std::move(output); });
    while (engine.step()) {
    }
    return last;
  };
  const int64_t first = engine.load_adapter("mine", work_ / "one");
  const RequestOutput one = answer("mine");
  RequestOutput found;
  engine.add(request, [&](RequestOutput output) { found = std::move(output); });
  engine.step();
  EXPECT_EQ(engine.adapters().at(0).requests, 1);
  const int64_t second = engine.load_adapter("mine", work_ / "other", true);
  EXPECT_NE(first, second);
  EXPECT_EQ(engine.adapters().at(0).version, second);
  EXPECT_EQ(engine.adapters().at(0).requests, 0);
  const RequestOutput other = answer("mine");
  EXPECT_NE(bits_of(other), bits_of(one));
  EXPECT_NE(other.fingerprint, one.fingerprint);
  EXPECT_EQ(bits_of(found), bits_of(one));
  EXPECT_EQ(found.fingerprint, one.fingerprint);
  // A name that is dropped is refused, and those that use it finish.
  engine.add(request, [&](RequestOutput output) { found = std::move(output); });
  engine.step();
  engine.unload_adapter("mine");
  EXPECT_TRUE(engine.adapters().empty());
  EXPECT_THROW(engine.add(request, {}), UserError);
  while (engine.step()) {
  }
  EXPECT_EQ(bits_of(found), bits_of(other));
}

TEST_P(AdaptersOfAnEngine, RefuseWhatIsNotTheirsAndChangeNothing) {
  Engine engine(own_setup(16, 64));
  Request request;
  request.prompt = "Once";
  request.sampling.adapter = "one";
  EXPECT_EQ(test::refusal([&] { engine.generate(request); }),
            "adapter: 'one' is not loaded\n    load it, or leave the key out");
  engine.load_adapter("one", work_ / "one");
  EXPECT_EQ(test::refusal([&] { engine.load_adapter("one", work_ / "other"); }),
            "adapters.one: an adapter of this name is loaded already\n    replace or remove it, or give another name");
  EXPECT_EQ(
      test::replaced(test::refusal([&] { engine.load_adapter("two", work_ / "nothing"); }), work_.path().string(), "W"),
      "W/nothing: has no adapter_config.json\n    give a folder that PEFT or easydel saved an adapter in");
  EXPECT_EQ(test::refusal([&] { engine.unload_adapter("two"); }),
            "adapters.two: no adapter of this name is loaded\n    known: one");
  // Of another model: its layers have other shapes.
  models::AdapterOptions options;
  config::read(parse_yaml("{r: 3, init: random}"), options.config, "lora").throw_if_any();
  models::LoadOptions foreign;
  foreign.adapters = {options};
  const auto made = models::load_model(test::test_data("hf_goldens/llama"), foreign);
  models::save_adapter(*made, *made->adapters().front(), work_ / "foreign", "base");
  EXPECT_EQ(
      test::replaced(test::refusal([&] { engine.load_adapter("two", work_ / "foreign"); }), work_.path().string(), "W"),
      "W/foreign/adapter_model.safetensors: base_model.model.model.layers.0.self_attn.o_proj.lora_A.weight is [3, 32]; "
      "the "
      "model needs [3, 64], and 41 more\n    the adapter was made for another model or with another configuration");
  ASSERT_EQ(engine.adapters().size(), 1u);
  EXPECT_EQ(engine.adapters()[0].name, "one");
  EXPECT_EQ(engine.adapters()[0].r, 3);
  EXPECT_EQ(engine.generate(request).error, "");
  const auto another = loaded({});
  EXPECT_EQ(test::refusal([&] { engine.update_model_weights([&] {
                                  return NewWeights{another, ""};
                                }); }),
            "model: another model cannot take over while adapters of the present one are loaded or used\n    unload "
            "them first, or change the weights in place");
  EXPECT_EQ(engine.generate(request).error, "");
}

// A sum has the bits that it has in the plain loop, keeps what it adds up, and is cached apart.
TEST_P(AdaptersOfAnEngine, AreAddedUp) {
  using Kind = models::AdapterSum::Kind;
  write("second", "{r: 3, alpha: 2, init: random}", 9);
  EngineSetup own = own_setup(16, 64);
  own.fingerprint = "fp";
  StepEngine engine(own);
  Request request;
  request.prompt = "Once upon a time";
  request.sampling.temperature = 0, request.sampling.max_tokens = 20, request.sampling.logprobs = 0;
  const auto answer = [&](const char* adapter) {
    request.sampling.adapter = adapter;
    RequestOutput last;
    engine.add(request, [&](RequestOutput output) { last = std::move(output); });
    while (engine.step()) {
    }
    return last;
  };
  for (const char* name : {"one", "second", "other", "zeros"}) engine.load_adapter(name, work_ / name);
  const std::string one = bits_of(answer("one"));
  const int64_t version = engine.add_adapter_sum("both", Kind::cat, {{"one", 2}, {"second", -0.5}});
  engine.add_adapter_sum("linear", Kind::linear, {{"one", 2}, {"second", -0.5}});
  engine.add_adapter_sum("nothing", Kind::cat, {{"zeros", 3}});
  EXPECT_EQ(engine.adapters().at(0).name, "both");
  EXPECT_EQ(engine.adapters().at(0).version, version);
  EXPECT_EQ(engine.adapters().at(0).r, 6);
  const RequestOutput both = answer("both");
  EXPECT_NE(bits_of(both), one);
  EXPECT_NE(bits_of(both), bits_of(answer("linear")));
  EXPECT_NE(both.fingerprint, answer("linear").fingerprint);
  request.sampling.adapter.reset();
  RequestOutput plain;
  engine.add(request, [&](RequestOutput output) { plain = std::move(output); });
  while (engine.step()) {
  }
  EXPECT_EQ(bits_of(answer("nothing")), bits_of(plain));
  // The answer of the model that both were loaded with.
  EngineSetup merged = setup(16, 64);
  models::AdapterOptions first = models::adapter_in(work_ / "one"), second = models::adapter_in(work_ / "second");
  first.weight = 2, second.weight = -0.5, second.name = "second";
  merged.model = loaded({first, second});
  StepEngine loop(merged);
  request.sampling.adapter.reset();
  RequestOutput expected;
  loop.add(request, [&](RequestOutput output) { expected = std::move(output); });
  while (loop.step()) {
  }
  EXPECT_EQ(both.outputs.at(0).token_ids, expected.outputs.at(0).token_ids);
  engine.unload_adapter("one");
  EXPECT_EQ(bits_of(answer("both")), bits_of(both));
  const auto refused = [&](const char* name, Kind kind, const char* part) {
    return test::refusal([&] { engine.add_adapter_sum(name, kind, {{"second", 1}, {part, 1}}); });
  };
  EXPECT_EQ(refused("both", Kind::cat, "zeros"),
            "adapters.both: an adapter of this name is loaded already\n    replace or remove it, or give another name");
  EXPECT_EQ(refused("x", Kind::cat, "one"),
            "adapters.x: no adapter is called 'one'\n    known: both, linear, nothing, other, second, zeros");
  EXPECT_EQ(refused("x", Kind::linear, "zeros"),
            "adapters.x: linear adds adapters of one rank, and model.layers.0.self_attn.o_proj has 3 and 4\n"
            "    cat adds those of different ranks");
  EXPECT_EQ(engine.adapters().size(), 6u);
}

// A copy of the model's tokenizer beside an adapter, in which `what` is another text.
void write_tokenizer(const fs::path& folder, const std::string& what, const std::string& other) {
  const fs::path from = test::test_data("models/stories260K-hf");
  files::write(folder / "tokenizer_config.json", files::read(from / "tokenizer_config.json"));
  files::write(folder / "tokenizer.json", test::replaced(files::read(from / "tokenizer.json"), what, other));
}

TEST_P(AdaptersOfAnEngine, ReadTextsWithTheTokenizerOfTheirFolder) {
  // "<0x00>" becomes "<call>", a special token.
  write_tokenizer(work_ / "one", "\"<0x00>\"", "\"<call>\"");
  const std::string added = files::read(work_ / "one" / "tokenizer.json");
  files::write(work_ / "one" / "tokenizer.json",
               test::replaced(added, "\"added_tokens\": [",
                              R"("added_tokens": [{"id": 3, "content": "<call>", "single_word": false, "lstrip": false,
                                 "rstrip": false, "normalized": false, "special": true}, )"));
  write_tokenizer(work_ / "other", "\"<0x00>\"", "\"<0x00>\"");  // the model's own
  EngineSetup own = own_setup(16, 64);
  StepEngine engine(own);
  engine.load_adapter("one", work_ / "one");
  engine.load_adapter("other", work_ / "other");
  EXPECT_TRUE(engine.adapters().at(0).tokenizer);
  EXPECT_FALSE(engine.adapters().at(1).tokenizer) << "it is the model's";
  const auto asked = [&](const char* adapter, Prompt prompt) {
    Request request;
    request.prompt = std::move(prompt);
    if (*adapter) request.sampling.adapter = adapter;
    request.sampling.temperature = 0, request.sampling.max_tokens = 12;
    request.sampling.output_kind = OutputKind::final_only, request.sampling.return_token_ids = true;
    RequestOutput out;
    engine.add(request, [&](RequestOutput output) { out = std::move(output); });
    while (engine.step()) {
    }
    return out;
  };
  using Ids = std::vector<TokenId>;
  const Ids with_call = {1, 261, 410, 3, 268}, without = tokenizer_->encode("a <call> b");
  ASSERT_NE(with_call, without);
  const RequestOutput found = asked("one", "a <call> b");
  EXPECT_EQ(found.prompt_token_ids, with_call);
  EXPECT_EQ(bits_of(found), bits_of(asked("one", with_call)));
  EXPECT_FALSE(found.outputs.at(0).text.empty());
  EXPECT_EQ(asked("other", "a <call> b").prompt_token_ids, without);
  EXPECT_EQ(asked("", "a <call> b").prompt_token_ids, without);
  // A new version without it is read with the model's.
  engine.load_adapter("one", work_ / "zeros", true);
  EXPECT_EQ(asked("one", "a <call> b").prompt_token_ids, without);
  // Where the model has none, texts are for those adapters alone that have one.
  own.tokenizer = nullptr;
  StepEngine bare(own);
  bare.load_adapter("one", work_ / "one");
  Request text;
  text.prompt = "a <call> b";
  EXPECT_EQ(test::refusal([&] { bare.add(text, {}); }),
            "prompt: is text, and the engine has no tokenizer\n    give token ids");
  text.sampling.adapter = "one";
  bare.add(text, [&](const RequestOutput& output) { EXPECT_EQ(output.prompt_token_ids, with_call); });
  while (bare.step()) {
  }
}

TEST_P(AdaptersOfAnEngine, RefuseTokensOfTheirTokenizerThatTheModelDoesNotHave) {
  write_tokenizer(work_ / "one", "\"added_tokens\": [",
                  R"("added_tokens": [{"id": 512, "content": "<call>", "single_word": false, "lstrip": false,
                     "rstrip": false, "normalized": false, "special": true}, )");
  StepEngine engine(own_setup(16, 64));
  engine.load_adapter("one", work_ / "one");
  Request request;
  request.sampling.adapter = "one", request.sampling.max_tokens = 4;
  request.prompt = "a <call> b";
  EXPECT_EQ(test::refusal([&] { engine.add(request, {}); }),
            "prompt: has the token id 512; the model's vocabulary has 512\n    use the model's own tokenizer");
  request.prompt = "a b";
  engine.add(request, [&](const RequestOutput& output) { EXPECT_EQ(output.error, ""); });
  while (engine.step()) {
  }
  files::write(work_ / "other" / "tokenizer.json", "{}");
  EXPECT_THROW(engine.load_adapter("other", work_ / "other"), UserError);
  EXPECT_EQ(engine.adapters().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Story, AdaptersOfAnEngine, testing::Values(subjects().front()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace easydel::esurge
