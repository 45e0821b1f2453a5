// What people do wrong, through the program: one clear error, status 2, and nothing written.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;
using test::TemporaryFolder;
using test::write_file;

class BadInput : public testing::Test {
 protected:
  BadInput() {
    model_ = test::test_data("models/stories260K-hf").string();
    write_file(folder_ / "data.txt", "Once upon a time there was a test.\nIt ran.\n");
  }

  // A whole run with `changes` (YAML lines) after its usual sections.
  std::string run_of(const std::string& changes, const std::string& actions = "[train]") const {
    return "model: {name_or_path: " + model_ + "}\nloader: {dtype: fp32, param_dtype: fp32}\n" + changes +
           "\nactions: " + actions + "\n";
  }
  test::Ran run(const std::string& text, std::vector<std::string> flags = {}) const {
    write_file(folder_ / "run.yaml", text);
    flags.insert(flags.begin(), {"elarge", "run.yaml"});
    return run_program(flags, {.folder = folder_.path()});
  }
  // The program's words, with the model's folder as MODEL.
  void expect_refusal(const test::Ran& ran, const std::string& text) const {
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(test::replaced(ran.err, model_, "MODEL"), text);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      EXPECT_TRUE(entry.path().filename() == "run.yaml" || entry.path().filename() == "data.txt" ||
                  !entry.path().has_extension() || entry.path().extension() == ".safetensors")
          << entry.path() << " was left behind";
  }
  void expect_one_problem(const test::Ran& ran, const std::string& problem) const {
    expect_refusal(ran, problem + "\n1 problem in run.yaml; nothing was run.\n");
  }

  std::string model_;
  TemporaryFolder folder_;
};

const std::string kData =
    "mixture: {informs: [{data_files: data.txt}]}\ntrainer: {total_batch_size: 2, max_training_steps: 1}";

TEST_F(BadInput, AnUnknownKey) {
  expect_one_problem(run(run_of("mixture: {informs: [{data_files: data.txt}]}\nesurge:\n  page_sise: 32")),
                     "run.yaml:5:3: esurge.page_sise: no such key\n    did you mean 'page_size'?");
}

TEST_F(BadInput, AWrongTypeAndAWrongValueAtOnce) {
  expect_refusal(
      run(run_of("mixture: {informs: [{data_files: data.txt}]}\ntrainer:\n  learning_rate: fast\n  optimizer: adamv")),
      "run.yaml:5:18: trainer.learning_rate: 'fast' is not a number\n    expected a number of at least 0 (default "
      "2e-05)\n"
      "run.yaml:6:14: trainer.optimizer: unknown value 'adamv'\n    did you mean 'adamw'? expected one of: adamw, "
      "adadelta, adafactor, adagrad, adamax, adamw_8bit, ademamix, ademamix_8bit, lion, lion_8bit, mars, muon, nadam, "
      "quad, radam, rmsprop, "
      "schedule_free_adamw, sgd, skew, soap (default adamw)\n"
      "2 problems in run.yaml; nothing was run.\n");
}

TEST_F(BadInput, AMissingRun) {
  const auto ran = run_program({"elarge", "nowhere.yaml"}, {.folder = folder_.path()});
  expect_refusal(ran, "nowhere.yaml: no such file\n");
}

TEST_F(BadInput, AModelFolderThatDoesNotExist) {
  write_file(folder_ / "run.yaml", "model: {name_or_path: ./no-model}\nactions: [validate]\n");
  expect_one_problem(run_program({"elarge", "run.yaml"}, {.folder = folder_.path()}),
                     "run.yaml:1:23: model.name_or_path: './no-model': no such folder\n    give a folder with "
                     "config.json and *.safetensors, or a name on the Hugging Face Hub");
  write_file(folder_ / "run.yaml", "model: {name_or_path: owner/name}\nactions: [validate]\n");
  const auto ran =
      run_program({"elarge", "run.yaml"},
                  {.environment = {{"HF_HUB_CACHE", "/nowhere"}, {"HF_HUB_OFFLINE", "1"}}, .folder = folder_.path()});
  expect_one_problem(
      ran,
      "run.yaml:1:23: model.name_or_path: 'owner/name' is not in the cache /nowhere, and HF_HUB_OFFLINE is set\n"
      "    give a folder, or try again");
}

TEST_F(BadInput, MissingDataAndAFolderThatIsNotAModel) {
  std::filesystem::create_directory(folder_ / "empty");
  write_file(folder_ / "run.yaml",
             "model: {name_or_path: empty}\nmixture: {informs: [{data_files: 'more/*.txt'}]}\nactions: [validate]\n");
  expect_refusal(run_program({"elarge", "run.yaml"}, {.folder = folder_.path()}),
                 "run.yaml:1:23: model.name_or_path: 'empty' has no config.json\n    give a Hugging Face model folder\n"
                 "run.yaml:2:34: mixture.informs[0].data_files: no file matches 'more/*.txt'\n    looked from " +
                     folder_.path().string() +
                     "; give a path or a pattern such as data/*.jsonl\n"
                     "2 problems in run.yaml; nothing was run.\n");
}

TEST_F(BadInput, TrainingWithoutData) {
  expect_one_problem(
      run(run_of("")),
      "run.yaml: mixture.informs: there is no training data\n    give at least one inform with data_files");
}

TEST_F(BadInput, ABatchThatDoesNotDivide) {
  expect_one_problem(
      run(run_of("mixture: {informs: [{data_files: data.txt}]}\ntrainer: {total_batch_size: 7, "
                 "gradient_accumulation_steps: 2}")),
      "run.yaml:4:29: trainer.total_batch_size: an update of 7 examples does not divide into 2 accumulation steps\n"
      "    make it a multiple of gradient_accumulation_steps, such as 8");
}

TEST_F(BadInput, MoreRanksThanTheMesh) {
  expect_one_problem(run(run_of(kData + "\nsharding: {axis_dims: [1, 2, 1, 1, 1]}")),
                     "run.yaml:5:23: sharding.axis_dims: cannot reshape array of size 1 into shape (1,2,1,1,1)\n"
                     "    the product of the dims must be the number of ranks, 1; start that many ranks with --nproc, "
                     "or write -1 for one axis");
  const auto ran = run(run_of(kData + "\nsharding: {axis_dims: [1, 2, 1, 1, 1]}"), {"--nproc", "3"});
  expect_one_problem(ran,
                     "run.yaml:5:23: sharding.axis_dims: cannot reshape array of size 3 into shape (1,2,1,1,1)\n"
                     "    the product of the dims must be the number of ranks, 3; start that many ranks with --nproc, "
                     "or write -1 for one axis");
}

TEST_F(BadInput, ABatchThatTheRanksCannotShare) {
  expect_one_problem(
      run(run_of("mixture: {informs: [{data_files: data.txt}]}\ntrainer: {total_batch_size: 3}"), {"--nproc", "2"}),
      "run.yaml:4:29: trainer.total_batch_size: 3 examples cannot be divided by 2 ranks and 1 micro-batches "
      "(gradient_accumulation_steps)\n    give a multiple of 2");
}

TEST_F(BadInput, AnOutputThatCannotBeWritten) {
  expect_one_problem(
      run(run_of(
          "mixture: {informs: [{data_files: data.txt}]}\ntrainer: {total_batch_size: 2, save_directory: data.txt}")),
      "run.yaml:4:48: trainer.save_directory: 'data.txt' is a file, not a folder\n    choose another name");
  expect_one_problem(run(run_of("", "[{to_yaml: nowhere/out.yaml}]")),
                     "run.yaml:4:21: actions[0].to_yaml.path: 'nowhere/out.yaml': there is no folder nowhere\n    "
                     "create it, or choose another path");
}

TEST_F(BadInput, Adapters) {
  const auto with = [&](const std::string& lora) { return run(run_of(kData + "\nlora: " + lora)); };
  expect_one_problem(with("{rank: 0}"),
                     "run.yaml:5:14: lora.r: 0 is out of range\n    expected an integer of at least 1 "
                     "(default 16)");
  expect_one_problem(with("{alpha: 0}"),
                     "run.yaml:5:15: lora.alpha: 0 is out of range\n    expected a number above 0 (default 32.0)");
  expect_one_problem(with("{target_modules: '('}"),
                     "run.yaml:5:24: lora.target_modules: '(' is not a regular expression\n    for example: "
                     "\".*\\.(q|v)_proj\"");
  expect_one_problem(
      with("{rank_pattern: {q_proj: x}}"),
      "run.yaml:5:22: lora.rank_pattern: 'x' is not a rank (q_proj)\n    give a whole number of at least "
      "1");
  expect_one_problem(with("{init_lora_weights: corda}"),
                     "run.yaml:5:27: lora.init_lora_weights: unknown value 'corda'\n    expected one of: default, "
                     "gaussian, random, pissa, olora, loftq, pissa_niter_N (default default)");
  expect_one_problem(with("{target_modules: '.*q_proj', layers_to_transform: [0]}"),
                     "run.yaml:5:57: lora.layers_to_transform: needs target_modules as a list of names\n    write "
                     "target_modules: [q_proj]");
  const test::Ran nowhere = with("{adapter: nowhere}");
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_TRUE(nowhere.err.starts_with("run.yaml:5:17: lora.adapter: 'nowhere': no such folder")) << nowhere.err;
  expect_one_problem(
      with("{adapter: .}"),
      "run.yaml:5:17: lora.adapter: .: has no adapter_config.json\n    give a folder that PEFT or easydel saved an "
      "adapter in");
}

TEST_F(BadInput, TrainingForCodesWithAnAdapter) {
  for (const char* adapter : {"lora: {r: 4}", "quantization: {model: {quantization_method: nf4}}"})
    expect_one_problem(
        run(run_of(str("mixture: {informs: [{data_files: data.txt}]}\ntrainer: {quantization_mode: nf4, "
                       "total_batch_size: 2}\n",
                       adapter))),
        "run.yaml:4:30: trainer.quantization_mode: trains the weights themselves, and a run with an adapter leaves "
        "them as they are\n    leave out the section lora and quantization.model, or quantization_mode");
}

TEST_F(BadInput, ModelsThatTheMethodHasNoUseFor) {
  for (const char* section : {"reference_model", "reward_model", "teacher_model"}) {
    const test::Ran ran = run(run_of(kData + "\n" + section + ": {name_or_path: " + model_ + "}"));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.err.find(section + std::string(" (with trainer_type sft)")), std::string::npos) << ran.err;
  }
}

TEST_F(BadInput, NumberFormatsThatAreNotBuilt) {
  const auto told = [&](const std::string& quantization, const std::string& problem) {
    expect_one_problem(run(run_of("quantization: " + quantization, "[{generate: {prompts: x}}]")),
                       "run.yaml:3:" + problem);
  };
  told("{model: {quantization_method: turboquant}}",
       "23: quantization.model: weights of turboquant are not built yet\n    built: 8bit, a4q, a8bit, a8q, affine, "
       "binary, fp4, mxfp4, mxfp8, nf4, nvfp4, nvfp8, ternary");
  told("{method: mxfp8, group_size: 64}",
       "43: quantization.group_size: mxfp8 has groups of 32, not 64\n    leave it out");
  told("{model: {dtype: nf4, group_size: 48}}",
       "48: quantization.model.group_size: groups of 48 values are not built yet\n    give a multiple of 32");
  told("{model: {dtype: nf4, bits: 8}}", "42: quantization.model.bits: nf4 has 4 bits, not 8\n    leave it out");
  told("{model: {dtype: nf4, runtime_dtype: turboquant}}",
       "51: quantization.model.runtime_dtype: weights of turboquant are not built yet\n    built: 8bit, a4q, a8bit, "
       "a8q, "
       "affine, binary, fp4, mxfp4, mxfp8, nf4, nvfp4, nvfp8, ternary");
  told("{model: {dtype: nf4, runtime_dtype: 8bit, simulate: true}}",
       "67: quantization.model.simulate: a simulated runtime_dtype is not built yet\n    leave one of the two out");
  const std::string built =
      "\n    built: 8bit, a8bit and a8q (int8 codes), a4q (int8 keys, int4 values), mxfp8 and nvfp8 (fp8 codes)";
  told("{kv_cache: {dtype: nf4}}",
       "34: quantization.kv_cache.quantization_method: a KV cache in nf4 is not built yet" + built);
  told("{kv_cache: {group_size: 32}}", "26: quantization.kv_cache.quantization_method: is missing" + built);
  told("{kv_cache: {dtype: 8bit, bits: 4}}",
       "46: quantization.kv_cache.bits: 8bit has 8 bits here, not 4\n    leave it out");
  told("{kv_cache: {dtype: a4q, bits: 8}}",
       "45: quantization.kv_cache.bits: a4q has 4 bits here, not 8\n    leave it out");
  told("{kv_cache: {dtype: 8bit, runtime_dtype: nf4}}",
       "55: quantization.kv_cache.runtime_dtype: reading the cache in a format other than its own is not built yet\n"
       "    leave it out");
  told("{kv_cache: {dtype: mxfp8, simulate: true}}",
       "51: quantization.kv_cache.simulate: a simulated KV cache is not built yet\n    leave it out");
  told("{kv_cache: {dtype: mxfp8, pattern: x}}",
       "50: quantization.kv_cache.pattern: has no effect on the KV cache: all layers share the format\n"
       "    leave it out");
  expect_one_problem(run(run_of("base_config: {values: {kvdtype: fp16}}", "[{generate: {prompts: x}}]")),
                     "run.yaml:3:33: base_config.values.kvdtype: a KV cache in fp16 is not built yet\n"
                     "    built: auto, bf16, fp32");
  expect_refusal(run(run_of("quantization: {model: {pattern: q_project}}", "[{generate: {prompts: x}}]")),
                 "quantization.model.pattern: no linear layer is called as 'q_project' asks\n"
                 "    one is called model.layers.4.mlp.down_proj\n");
}

TEST_F(BadInput, AKeyThatNeitherEasyDeLNorTheModelHas) {
  expect_one_problem(run(run_of("base_config: {values: {rope_thet: 3}}", "[validate]")),
                     "run.yaml:3:35: base_config.values.rope_thet: no such key: neither EasyDeL nor the model's "
                     "config.json has it\n    did you mean 'rope_theta'?");
}

// Every family reads such keys, and published files often leave them out.
TEST_F(BadInput, AKeyThatTheModelReadsButDoesNotHave) {
  EXPECT_EQ(run(run_of("base_config: {values: {is_causal: false, initializer_range: 0.5}}", "[validate]")).status, 0);
  expect_one_problem(run(run_of("base_config: {values: {is_casual: false}}", "[validate]")),
                     "run.yaml:3:35: base_config.values.is_casual: no such key: neither EasyDeL nor the model's "
                     "config.json has it\n    did you mean 'is_causal'?");
}

TEST_F(BadInput, ATokenizerThatIsMissing) {
  std::filesystem::copy(model_, folder_ / "model");
  std::filesystem::remove(folder_ / "model/tokenizer.json");
  write_file(folder_ / "run.yaml", "model: {name_or_path: model}\n" + kData + "\nactions: [train]\n");
  const auto ran = run_program({"elarge", "run.yaml"}, {.folder = folder_.path()});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err.substr(0, 43), "run.yaml:1:23: model.name_or_path: model: h") << ran.err;
}

TEST_F(BadInput, WordsAndFlagsOnTheCommandLine) {
  const auto refused = [](std::vector<std::string> arguments) {
    const auto ran = run_program(std::move(arguments), {.input = ""});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  EXPECT_EQ(refused({"tokenize", "/nope", "x"}),
            "/nope: no such file or folder\n    give the folder of a tokenizer, or a tokenizer.json, tokenizer.model, "
            "*.tiktoken, tekken.json, vocab.txt or *.gguf\n");
  EXPECT_EQ(refused({"generat"}), "easydel: no command 'generat'\n    did you mean 'generate'?\n");
  for (const char* word : {"train", "trian", "finetune"})
    EXPECT_EQ(refused({word, "run.yaml"}), str("easydel: no command '", word,
                                               "'\n    to train, name a YAML file: easydel elarge run.yaml "
                                               "(examples/01_quickstart.yaml)\n"));
  EXPECT_EQ(refused({"describe", "modl"}), "easydel describe: no command 'modl'\n    did you mean 'model'?\n");
  EXPECT_EQ(refused({"elarge", "a.yaml", "--dry-rn"}),
            "easydel elarge --dry-rn: no such option\n    did you mean '--dry-run'?\n");
  EXPECT_EQ(refused({"elarge", "a.yaml", "b.yaml"}),
            "easydel elarge: 'b.yaml' is one argument too many\n    see easydel elarge --help\n");
  EXPECT_EQ(refused({"elarge"}),
            "easydel elarge: no file given\n    name the file of the run: easydel elarge run.yaml\n");
  EXPECT_EQ(refused({"elarge", "a.yaml", "--set", "x"}),
            "--set x: has no '='\n    for example --set trainer.learning_rate=1e-4\n");
  EXPECT_EQ(refused({"generate", "m", "-p", "x", "--top-p", "2"}),
            "--top-p 2: top_p: 2 is out of range\n    expected a number from 0 to 1 (default 1.0)\n1 problem in "
            "command line; nothing was run.\n");
  EXPECT_EQ(refused({"generate", "m", "-p", "x", "--num-beans", "2"}),
            "easydel generate --num-beans: no such option\n    did you mean '--num-beams'?\n");
  EXPECT_EQ(refused({"generate", "m", "-p", "x", "--early-stopping", "soon"}),
            "--early-stopping soon: early_stopping: unknown value 'soon'\n    expected one of: false, true, never "
            "(default \"false\")\n"
            "1 problem in command line; nothing was run.\n");
  EXPECT_EQ(refused({"generate", "m", "-p", "x", "--prompt-lookup-num-tokens", "3"}),
            "--prompt-lookup-num-tokens 3: prompt_lookup_num_tokens: speculation is not built yet\n    leave the key "
            "out, or give its default null\n"
            "1 problem in command line; nothing was run.\n");
  EXPECT_EQ(refused({"generate", "m", "-p", "x", "--cache-implementation", "quantized"}),
            "--cache-implementation quantized: cache_implementation: 'quantized' is not built yet\n    built: dynamic\n"
            "1 problem in command line; nothing was run.\n");
  const std::string story = test::test_data("models/stories260K-hf").string();
  EXPECT_EQ(refused({"generate", story, "-p", "x", "--num-return-sequences", "2"}),
            "generation: num_return_sequences: 2 continuations of the likeliest tokens would all be equal\n    set "
            "do_sample, or raise num_beams to at least this number\n1 problem in generation; nothing was run.\n");
  EXPECT_EQ(refused({"generate", story, "-p", "x", "--set", "quantization.method=turboquant"}),
            "command line: quantization: weights of turboquant are not built yet\n    built: 8bit, a4q, a8bit, a8q, "
            "affine, binary, fp4, mxfp4, mxfp8, nf4, nvfp4, nvfp8, ternary\n1 problem in command line; nothing was "
            "run.\n");
  EXPECT_EQ(refused({"probe", "logits", story, "--inputs", "a", "--output", "b", "--set", "loader.dtype=bf16"}),
            "--set loader.dtype: has no effect on probe logits\n    attn_mechanism, kvdtype and moe_method of "
            "base_config.values, and quantization.* have\n");
  EXPECT_EQ(refused({"generate", "m"}),
            "easydel generate: there is no prompt\n    give one with -p 'text', several with --prompts-file, or one on "
            "standard input\n");
  EXPECT_EQ(refused({"probe", "vectors", "x.json", "--check"}),
            "x.json: no such file\n    give files of recorded cases\n");
  EXPECT_EQ(
      refused({"probe", "constrain", "--tokenizer", story}),
      "probe constrain: there is no constraint\n    give one of --json-schema FILE, --json-object, --regex PATTERN, "
      "--grammar FILE, --choice TEXT\n");
  EXPECT_EQ(refused({"probe", "constrain", "--tokenizer", story, "--regex", "a", "--grammar", "g"}),
            "probe constrain: --regex and --grammar are two constraints\n    give one of them\n");
  EXPECT_EQ(refused({"generate", story, "-p", "x", "--regex", "a", "--choice", "b"}),
            "easydel generate: --regex and --choice are two constraints\n    give one of them\n");
  EXPECT_EQ(refused({"generate", story, "-p", "x", "--after", "</think>"}),
            "easydel generate: --after has no constraint that could follow it\n    give --json-schema, --json-object, "
            "--regex, --grammar or --choice\n");
  EXPECT_EQ(refused({"generate", "--server", "http://127.0.0.1:9", "-p", "x", "--after", "a", "--regex", "b"}),
            "--after: requests to a server have no constraint after a marker\n    leave out --server\n");
  EXPECT_EQ(refused({"generate", story, "-p", "x", "--regex", "(a"}),
            "regex: the pattern '(a' has a '(' without ')' (at byte 2)\n");
  EXPECT_EQ(refused({"describe", "keys", "trainer.learning_rat"}),
            "trainer.learning_rat: no such key\n    did you mean 'learning_rate'?\n");
}

TEST(BadEnvironment, IsReportedBeforeAnythingIsDone) {
  const auto refused = [](const char* name, const char* value) {
    const auto ran = test::run_program({"validate", "nowhere.yaml"}, {.environment = {{name, value}}});
    EXPECT_EQ(ran.status, 2);
    return ran.err;  // OpenMP also reports errors in its own variables
  };
  EXPECT_EQ(refused("EASYDEL_LOG", "loud"),
            "EASYDEL_LOG: 'loud' is not a log level\n    known: debug, info, warning, error\n");
  for (const char* value : {"0", "-1", "many"}) {
    const std::string said = refused("OMP_NUM_THREADS", value);
    EXPECT_TRUE(said.ends_with(str("OMP_NUM_THREADS: '", value, "' is not a number of threads\n    give 1 or more\n")))
        << said;
  }
}

}  // namespace
}  // namespace easydel
