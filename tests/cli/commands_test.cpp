// Commands that need no torch, through the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;

TEST(Commands, VersionAndHelpSayWhatThereIs) {
  EXPECT_EQ(run_program({"version"}).out, "easydel " EASYDEL_VERSION "\n");
  EXPECT_EQ(run_program({"--version"}).out, run_program({"version"}).out);
  const auto help = run_program({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"elarge", "validate", "generate", "chat", "probe", "describe", "doctor", "version"})
    EXPECT_NE(help.out.find(std::string("\n  ") + command + " "), std::string::npos) << command;
  EXPECT_EQ(run_program({}).out, help.out);
}

TEST(Commands, ThePageOfKeysIsUpToDate) {
  EXPECT_EQ(test::read_file(test::source_root() / "docs/keys.md"), run_program({"describe", "keys", "--markdown"}).out)
      << "make it anew: easydel describe keys --markdown > docs/keys.md";
}

TEST(Commands, TheSchemaKnowsEverySectionAndAction) {
  const Value schema = parse_json(run_program({"config-schema"}).out);
  const Value* const types =
      schema.find("properties")->find("trainer")->find("properties")->find("trainer_type")->find("enum");
  ASSERT_TRUE(types);
  for (const char* type : {"sft", "dpo", "grpo"})
    EXPECT_TRUE(std::ranges::any_of(types->items, [&](const Value& one) { return one.scalar == type; })) << type;
  const Value& properties = *schema.find("properties");
  for (const char* key :
       {"model", "loader", "sharding", "mixture", "trainer", "esurge", "eval", "config", "elm", "actions"})
    EXPECT_NE(properties.find(key), nullptr) << key;
  EXPECT_EQ(schema.find("additionalProperties")->as_bool(), false);
  EXPECT_EQ(to_json(*properties.find("trainer")->find("properties")->find("scheduler")->find("enum")),
            R"(["none", "constant", "constant_with_warmup", "linear", "cosine", "cosine_with_restarts", )"
            R"("cosine_with_min_lr", "cosine_warmup_with_min_lr", "polynomial", "inverse_sqrt", )"
            R"("warmup_stable_decay", "wsd", "reduce_on_plateau", "reduce_lr_on_plateau"])");
}

TEST(Commands, ADryRunPrintsTheWholeConfigurationAndRunsAgain) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "run.yaml", "model: {name_or_path: " + test::test_data("models/stories260K-hf").string() +
                                            "}\nactions: [validate, {to_json: out.json}]\n");
  const auto dry = run_program({"elarge", "--config", "run.yaml", "--dry-run", "--set", "trainer.learning_rate=3e-4"},
                               {.folder = folder.path()});
  ASSERT_EQ(dry.status, 0) << dry.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "out.json"));
  const Value document = parse_yaml(dry.out);
  EXPECT_EQ(document.find("config")->find("trainer")->find("learning_rate")->as_double(), 3e-4);
  test::write_file(folder / "again.yaml", dry.out);
  const auto ran = run_program({"elarge", "again.yaml"}, {.folder = folder.path()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "again.yaml is valid: 2 actions\n");
  EXPECT_EQ(parse_file(folder / "out.json"), *document.find("config"));
}

TEST(Commands, ValidateChecksARunAndDoesNothingOfIt) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "run.yaml", "model: {name_or_path: " + test::test_data("models/stories260K-hf").string() +
                                            "}\nactions: [print, {to_json: out.json}, {generate: {prompts: a}}]\n");
  const auto ran = run_program({"validate", "run.yaml"}, {.folder = folder.path()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "run.yaml is valid: 3 actions\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.json"));
  const auto wrong =
      run_program({"validate", "run.yaml", "--set", "trainer.learning_rate=fast"}, {.folder = folder.path()});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.out, "");
  EXPECT_EQ(wrong.err,
            "--set trainer.learning_rate=fast: trainer.learning_rate: 'fast' is not a number\n"
            "    expected a number of at least 0 (default 2e-05)\n1 problem in run.yaml; nothing was run.\n");
  const auto ranks =
      run_program({"--nproc", "2", "validate", "run.yaml", "--set", "sharding.axis_dims=[1, 3, 1, 1, 1]"},
                  {.folder = folder.path()});
  EXPECT_EQ(ranks.err,
            "--set sharding.axis_dims=[1, 3, 1, 1, 1]: sharding.axis_dims: cannot reshape array of size 2 into shape "
            "(1,3,1,1,1)\n"
            "    the product of the dims must be the number of ranks, 2; start that many ranks with --nproc, or write "
            "-1 for one axis\n"
            "1 problem in run.yaml; nothing was run.\n");
  EXPECT_EQ(run_program({"validate"}).err,
            "easydel validate: no file given\n    name the file of the run: easydel validate run.yaml\n");
}

TEST(Commands, DescribeAModelFromItsFilesAlone) {
  const std::string model = test::test_data("models/stories260K-hf").string();
  const Value json = parse_json(run_program({"describe", "model", model, "--json"}).out);
  EXPECT_EQ(json.find("parameters")->as_int(), 260032);
  EXPECT_EQ(json.find("model_type")->scalar, "llama");
  EXPECT_EQ(json.find("tensors")->items.size(), 11u);
  EXPECT_EQ(json.find("layers")->as_int(), 5);
  EXPECT_EQ(json.find("flops_per_token")->as_double(), 2 * (260032 - 11 * 64));  // all but the norms
  EXPECT_NE(run_program({"describe", "model", model}).out.find("model.layers.*.mlp.up_proj.weight"), std::string::npos);
}

TEST(Commands, DescribeAnAdapterFromItsFilesAlone) {
  const std::string adapter = test::test_data("adapters/pissa_dora").string();
  EXPECT_EQ(run_program({"describe", "model", adapter}).out,
            adapter +
                "\nadapter       LoRA, r 2, alpha 4\n"
                "model         not given (base_model_name_or_path)\n"
                "layers        [q_proj, v_proj]\n"
                "settings      init_lora_weights: pissa, use_dora: true\n"
                "parameters    816 (816), 3.19 KiB\n"
                "  base_model.model.model.layers.*.self_attn.q_proj.lora_A.weight          3 of  2 x 32  F32  192\n"
                "  base_model.model.model.layers.*.self_attn.q_proj.lora_B.weight          3 of  32 x 2  F32  192\n"
                "  base_model.model.model.layers.*.self_attn.q_proj.lora_magnitude_vector  3 of  32      F32  96\n"
                "  base_model.model.model.layers.*.self_attn.v_proj.lora_A.weight          3 of  2 x 32  F32  192\n"
                "  base_model.model.model.layers.*.self_attn.v_proj.lora_B.weight          3 of  16 x 2  F32  96\n"
                "  base_model.model.model.layers.*.self_attn.v_proj.lora_magnitude_vector  3 of  16      F32  48\n");
  const Value json = parse_json(run_program({"describe", "model", adapter, "--json"}).out);
  EXPECT_EQ(json.find("parameters")->as_int(), 816);
  EXPECT_EQ(json.find("adapter")->find("init_lora_weights")->scalar, "pissa");
}

TEST(Commands, TokenizeShowsTheTokensAndTheirPartsOfTheText) {
  const std::string model = test::test_data("models/stories260K-hf").string();
  const auto ran = run_program({"tokenize", model, "Once \xF0\x9F\x99\x82\n", "--no-special", "--tokens"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::string parts;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'), 2) << line;
    parts += line.substr(line.rfind('\t') + 1) + " ";
  }
  EXPECT_TRUE(parts.starts_with("\"Once\" ")) << parts;
  EXPECT_TRUE(parts.ends_with("\"\\n\" ")) << parts;
}

// The published Llama 3.2 1B.
TEST(Commands, DescribeAModelOfWhichThereIsAConfigurationAlone) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "tie_word_embeddings": true,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16"})");
  const Value json = parse_json(run_program({"describe", "model", folder.path().string(), "--json"}).out);
  EXPECT_EQ(json.find("parameters")->as_int(), 1235814400);
  EXPECT_EQ(json.find("bytes")->as_int(), 2471628800);
  EXPECT_EQ(json.find("layers")->as_int(), 16);
  EXPECT_EQ(json.find("planned")->as_bool(), true);
  EXPECT_NE(
      run_program({"describe", "model", folder.path().string()})
          .out.find(
              "parameters    1235814400 (1.24 G), 2.30 GiB, planned from config.json; the folder has no weights\n"),
      std::string::npos);
  test::write_file(folder / "config.json", R"({"model_type": "llama", "num_hidden_layers": -1})");
  EXPECT_NE(run_program({"describe", "model", folder.path().string()})
                .out.find("parameters    none in the folder, and they cannot be planned: " +
                          (folder / "config.json").string() + ": num_hidden_layers: -1 is not positive\n"),
            std::string::npos);
}

TEST(Commands, TokenizeAndDetokenizeAreInverse) {
  const std::string model = test::test_data("models/stories260K-hf").string();
  const std::string ids = run_program({"tokenize", model, "Once upon a time", "--no-special"}).out;
  std::vector<std::string> back = {"detokenize", model};
  for (size_t at = 0; at < ids.size();) {
    const size_t end = ids.find_first_of(" \n", at);
    back.push_back(ids.substr(at, end - at));
    at = end + 1;
  }
  EXPECT_EQ(run_program(back).out, "Once upon a time\n");
}

TEST(Commands, ProbesAnswerEveryLineAlsoWithAnError) {
  const std::string model = test::test_data("models/stories260K-hf").string();
  const auto ran = run_program({"probe", "tokenize", "--tokenizer", model},
                               {.input = "{\"text\": \"Once\"}\n{\"tex\": 1}\n\n{\"ids\": [1]}\n"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 3);
  EXPECT_NE(ran.out.find("\n{\"error\": "), std::string::npos) << ran.out;
}

TEST(Commands, RenderAndChatUseTheModelsTemplate) {
  const std::string model = test::test_data("models/stories260K-hf").string(),
                    chat = test::test_data("models/stories260K-chat").string();
  EXPECT_EQ(run_program({"render", chat, "-"}, {.input = R"([{"role": "user", "content": "hi"}])"}).out,
            "<s>Question: hi\nAnswer: \n");
  const auto talk =
      run_program({"chat", model, "--tokenizer", chat, "-n", "5", "-t", "0"}, {.input = "Hello\n/reset\nHello\n"});
  ASSERT_EQ(talk.status, 0) << talk.err;
  const std::string about = run_program({"render", chat, "--about"}).out;
  for (const char* line : {"conversation              yes\n", "tools                     no\n",
                           "marks generated text      yes\n", "tool parser               llama3_json\n"})
    EXPECT_NE(about.find(line), std::string::npos) << about;
  EXPECT_EQ(run_program({"render", model, "--about"}).err,
            model + ": has no chat template\n    give a folder that has one, or a template file\n");
  // After a reset the same words get the same reply.
  const std::string first = talk.out.substr(0, talk.out.size() / 2);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(talk.out, first + first);
}

TEST(Commands, GenerateStreamsOrAnswersLineByLine) {
  const std::string model = test::test_data("models/stories260K-hf").string();
  const auto streamed = run_program({"generate", model, "-n", "12", "-t", "0"}, {.input = "Once upon a time\n"});
  ASSERT_EQ(streamed.status, 0) << streamed.err;
  const auto lines =
      run_program({"generate", model, "-n", "12", "-t", "0", "--jsonl", "-p", "Once upon a time", "-p", "The dog"});
  const Value first = parse_json(lines.out.substr(0, lines.out.find('\n')));
  EXPECT_EQ("Once upon a time" + first.find("text")->scalar + "\n", streamed.out);
  EXPECT_EQ(first.find("new_tokens")->as_int(), 12);
  EXPECT_EQ(first.find("finish_reason")->scalar, "length");
}

TEST(Commands, GenerateReadsWeightsOfTheFormatThatItIsTold) {
  const std::string model = test::test_data("models/stories260K-hf").string();
  const std::vector<std::string> usual = {
      "generate", model, "-n", "20", "-t", "0", "-p", "Once upon a time", "-p", "The little dog was"};
  const auto texts = [&](std::vector<std::string> more) {
    more.insert(more.begin(), usual.begin(), usual.end());
    const auto ran = run_program(more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return std::pair(ran.out, ran.err);
  };
  const auto plain = texts({}).first;
  for (const char* method : {"8bit", "a8q", "nf4", "a4q"}) {
    const std::string set = str("quantization.model.quantization_method=", method);
    const auto [together, told] = texts({"--set", set});
    EXPECT_TRUE(told.find(str("35 weights in ", method)) != std::string::npos) << told;
    EXPECT_EQ(texts({"--set", set, "--batch", "1"}).first, together) << method;
    // The action reads the same section.
    test::TemporaryFolder folder;
    test::write_file(
        folder / "run.yaml",
        str("model: {name_or_path: ", model,
            "}\nloader: {dtype: auto, param_dtype: auto}\nquantization: {model: {quantization_method: ", method,
            "}}\nactions: [{generate: {prompts: [Once upon a time, The little dog was], "
            "max_new_tokens: 20, temperature: 0, output_path: out.jsonl}}]\n"));
    const auto ran = run_program({"elarge", "run.yaml"}, {.folder = folder.path()});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const std::string lines = test::read_file(folder / "out.jsonl");
    const auto text = [&](const std::string& line) {
      const Value value = parse_json(line);
      return value.find("prompt")->scalar + value.find("text")->scalar + "\n";
    };
    EXPECT_EQ(text(lines.substr(0, lines.find('\n'))) + text(lines.substr(lines.find('\n') + 1)), together) << method;
  }
  EXPECT_EQ(
      texts({"--set", "quantization.model.quantization_method=nf4", "--set", "quantization.apply_quantization=false"})
          .first,
      plain);
}

TEST(Commands, GenerateGivesSeveralContinuationsBestFirst) {
  const std::string model = test::test_data("models/stories260K-hf").string();
  const std::vector<std::string> beams = {
      "generate",         model,  "-n", "10",       "--num-beams", "3", "--num-return-sequences", "2",
      "--early-stopping", "true", "-p", "Once upon"};
  const auto shown = run_program(beams);
  ASSERT_EQ(shown.status, 0) << shown.err;
  std::vector<std::string> with_lines = beams;
  with_lines.push_back("--jsonl");
  const auto lines = run_program(with_lines);
  const size_t end = lines.out.find('\n');
  const Value first = parse_json(lines.out.substr(0, end)), second = parse_json(lines.out.substr(end + 1));
  EXPECT_GT(first.find("score")->as_double(), second.find("score")->as_double());
  EXPECT_EQ(shown.out, "Once upon" + first.find("text")->scalar + "\nOnce upon" + second.find("text")->scalar + "\n");
  const auto drawn = run_program(
      {"generate", model, "-n", "10", "--do-sample", "--num-return-sequences", "2", "--seed", "4", "-p", "Once upon"});
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_EQ(std::ranges::count(drawn.out, '\n'), 2);
}

TEST(Commands, CtrlCEndsAReplyWithTheTextSoFarAndANote) {
  test::TemporaryFolder folder;
  const test::fs::path story = test::test_data("models/stories260K-hf");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) test::fs::copy(story / name, folder / name);
  // Without an end, and far longer than anybody waits.
  test::write_file(
      folder / "config.json",
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 32,
    "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 300000})");
  const std::string script =
      "mkfifo text; $0 -q generate . --random-weights -n 290000 -t 0 -p Once > text & "
      "{ head -c 3 > begin; kill -INT $!; cat > rest; } < text; wait $!; exit $?";
  const auto ran = test::run({"sh", "-c", script, test::program().string()}, {.folder = folder.path()});
  EXPECT_EQ(ran.status, 128 + SIGINT) << ran.err;
  EXPECT_TRUE(test::read_file(folder / "rest").ends_with("\n"));
  EXPECT_TRUE(ran.err.starts_with("stopped by Ctrl-C after ")) << ran.err;
  EXPECT_TRUE(ran.err.ends_with(" new tokens\n")) << ran.err;
}

TEST(Commands, GenerateStopsAtTextsAndKeepsThemOut) {
  const std::string model = test::test_data("models/stories260K-hf").string();
  const auto ran = run_program({"generate", model, "-n", "60", "-t", "0", "--stop", " there was", "--stop", "zzz",
                                "--jsonl", "-p", "Once upon a time"});
  const Value line = parse_json(ran.out);
  EXPECT_EQ(line.find("finish_reason")->scalar, "stop_string") << ran.out << ran.err;
  EXPECT_EQ(line.find("text")->scalar, ",");
}

}  // namespace
}  // namespace easydel
