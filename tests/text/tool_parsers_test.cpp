#include "easydel/text/output/tool_parsers.h"

#include <gtest/gtest.h>

#include "text/parsed_answer.h"

namespace easydel::text {
namespace {

// In a text with blanks of its own they are letters (Maltese); one without was not decoded.
TEST(ToolParsers, KeepsTheLettersThatStandForBlanksInUndecodedTexts) {
  const std::string call = R"(<function name="f"><param name="a">Ġgantija Ċ</param></function>)";
  const std::string undecoded = R"(<functionĠname="f"><paramĠname="a">GozoĠandĊMalta</param></function>)";
  EXPECT_EQ(parsed("minicpm5xml", "Ġgantija is in Gozo, ĠĊ."), "content[Ġgantija is in Gozo, ĠĊ.] reasoning[]");
  EXPECT_EQ(parsed("minicpm5xml", "IĠnamed " + call + " Ġ"), "content[] reasoning[] :f{\"a\": \"Ġgantija Ċ\"}");
  EXPECT_EQ(parsed("minicpm5xml", "ĊFirst,ĠI" + undecoded + "Ġthen"),
            "content[] reasoning[] :f{\"a\": \"Gozo and\\nMalta\"}");
  EXPECT_EQ(parsed("minicpm5xml", "Ġ<functionĠname=bad</function>Ġb"),
            "content[ <function name=bad</function> b] reasoning[]");
}

TEST(ToolParsers, ReadsTheFormatsThatNoRecordedCaseShows) {
  const std::string call = "content[Hi] reasoning[] :get_weather{\"city\": \"Rom \\\"E\\\"\", \"n\": 2}";
  const OutputOptions typed = with_tools(R"([{"type": "function", "function": {"name": "get_weather", "parameters":
      {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}}}}])");
  const std::string json = R"({"city": "Rom \"E\"", "n": 2})";
  EXPECT_EQ(parsed("deepseek_v31", "Hi<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>" + json +
                                       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
            call);
  EXPECT_EQ(parsed("deepseek_v32",
                   "Hi<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter "
                   "name=\"city\" string=\"true\">Rom "
                   "\"E\"</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" "
                   "string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
                   "</｜DSML｜function_calls>"),
            call);
  EXPECT_EQ(parsed("gemma4", "Hi<|tool_call>call:get_weather{city:<|\"|>Rom \"E\"<|\"|>,n:2}<tool_call|>"), call);
  EXPECT_EQ(parsed("gigachat3", "Hi<|function_call|>{\"name\": \"get_weather\", \"arguments\": " + json + "}"), call);
  EXPECT_EQ(parsed("glm45",
                   "Hi<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rom "
                   "\"E\"</arg_value>\n<arg_key>n</arg_key>\n<arg_value>2</arg_value>\n</tool_call>"),
            call);
  EXPECT_EQ(parsed("glm47",
                   "Hi<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rom "
                   "\"E\"</arg_value><arg_key>n</arg_key><arg_value>2</arg_value></tool_call>"),
            call);
  EXPECT_EQ(
      parsed("hunyuan_a13b", "Hi<tool_calls>[{\"name\": \"get_weather\", \"arguments\": " + json + "}]</tool_calls>"),
      call);
  EXPECT_EQ(
      parsed("kimi_k2",
             "Hi<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>" +
                 json + "<|tool_call_end|><|tool_calls_section_end|>"),
      "content[Hi] reasoning[] functions.get_weather:0:get_weather" + json);
  EXPECT_EQ(
      parsed("minimax", "Hi<tool_calls>\n{\"name\": \"get_weather\", \"arguments\": " + json + "}\n</tool_calls>"),
      call);
  EXPECT_EQ(parsed("minimax_m2",
                   "Hi<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Rom "
                   "\"E\"</parameter>\n<parameter name=\"n\">2</parameter>\n</invoke>\n</minimax:tool_call>",
                   "", typed),
            call);
  EXPECT_EQ(parsed("openai",
                   "<|channel|>final<|message|>Hi<|end|><|start|>assistant<|channel|>commentary "
                   "to=functions.get_weather <|constrain|>json<|message|>" +
                       json + "<|call|>"),
            call);
  EXPECT_EQ(parsed("seed_oss",
                   "Hi<seed:tool_call>\n<function=get_weather>\n<parameter=city>Rom "
                   "\"E\"</parameter>\n<parameter=n>2</parameter>\n</function>\n</seed:tool_call>",
                   "", typed),
            call);
  EXPECT_EQ(parsed("cohere_command",
                   "Hi<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": " +
                       json + "}]<|END_ACTION|>"),
            "content[Hi] reasoning[] 0:get_weather" + json);
  EXPECT_EQ(parsed("nemotron", "Hi<TOOLCALL>[{\"name\": \"get_weather\", \"arguments\": " + json + "}]</TOOLCALL>"),
            call);
  EXPECT_EQ(parsed("apertus", "Hi<|tools_prefix|>[{\"get_weather\": " + json + "}]<|tools_suffix|>"), call);
  EXPECT_EQ(parsed("lfm2", "Hi<|tool_call_start|>[get_weather(city='Rom \"E\"', n=2)]<|tool_call_end|>"), call);
  EXPECT_EQ(parsed("functionary", "Hi<function=get_weather>" + json + "</function>"), call);
}

TEST(ToolParsers, KeepsACallWhoseListBreaksOffAfterWholeArguments) {
  const std::string call = "content[Hi] reasoning[] :f{\"a\": 1}";
  EXPECT_EQ(parsed("apertus", "Hi<|tools_prefix|>[{\"f\": {\"a\": 1}"), call);
  EXPECT_EQ(parsed("apertus", "Hi<|tools_prefix|>[{\"f\": {\"a\": 1}}"), call);
  EXPECT_EQ(parsed("apertus", "Hi<|tools_prefix|>[{\"f\": {\"a\": 1}}, {\"g\": {}"), call + " :g{}");
  EXPECT_EQ(parsed("hermes", "Hi<tool_call>[{\"name\": \"f\", \"arguments\": {\"a\": 1}"), call);
  // Arguments that break off are not a call.
  EXPECT_EQ(parsed("apertus", "Hi<|tools_prefix|>[{\"f\": {\"a\": 1"),
            "content[Hi<|tools_prefix|>[{\"f\": {\"a\": 1] reasoning[]");
  EXPECT_EQ(parsed("hermes", "Hi<tool_call>[{\"arguments\": {\"a\": 1}"),
            "content[Hi<tool_call>[{\"arguments\": {\"a\": 1}] reasoning[]");
}

TEST(ToolParsers, LooksForNoCallsInThinkingThatNobodySeparates) {
  EXPECT_EQ(parsed("minimax",
                   "<think>I use <tool_calls>\n{\"name\": \"no\", \"arguments\": {}}\n</tool_calls></think> Now. "
                   "<tool_calls>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_calls>"),
            "content[<think>I use <tool_calls>\n{\"name\": \"no\", \"arguments\": {}}\n</tool_calls></think> Now.] "
            "reasoning[] :f{}");
  EXPECT_EQ(parsed("hunyuan_a13b",
                   "<think>like <tool_calls>[{\"name\": \"no\", \"arguments\": {}}]</tool_calls></think>\n"
                   "<tool_calls>[{\"name\": \"f\", \"arguments\": {}}]</tool_calls>"),
            "content[<think>like <tool_calls>[{\"name\": \"no\", \"arguments\": {}}]</tool_calls></think>\n] "
            "reasoning[] :f{}");
  EXPECT_EQ(parsed("seed_oss",
                   "<seed:think>like "
                   "<seed:tool_call><function=f></function></seed:tool_call></"
                   "seed:think>\n<seed:tool_call>\n<function=g>\n</function>\n</seed:tool_call>"),
            "content[<seed:think>like <seed:tool_call><function=f></function></seed:tool_call></seed:think>\n] "
            "reasoning[] :g{}");
}

TEST(ToolParsers, TakesTheWordNullForNullInFormatsOfBareText) {
  const OutputOptions options = with_tools(
      R"([{"name": "f", "parameters": {"properties": {"s": {"type": "string"}, "i": {"type": "integer"}}}}])");
  const auto qwen = [&](const std::string& s, const std::string& i) {
    const std::string call =
        "<function=f>\n<parameter=s>\n" + s + "\n</parameter>\n<parameter=i>" + i + "</parameter>\n</function>";
    EXPECT_EQ(parsed("seed_oss", call, "", options), parsed("qwen3_coder", call, "", options));
    return parsed("qwen3_coder", call, "", options);
  };
  EXPECT_EQ(qwen("null", "NULL"), "content[] reasoning[] :f{\"s\": null, \"i\": null}");
  EXPECT_EQ(qwen("nullify", "7"), "content[] reasoning[] :f{\"s\": \"nullify\", \"i\": 7}");
  EXPECT_EQ(qwen("None", "null "), "content[] reasoning[] :f{\"s\": \"None\", \"i\": \"null \"}");
  EXPECT_EQ(qwen("\n nu\n", "x"), "content[] reasoning[] :f{\"s\": \"\\n nu\\n\", \"i\": \"x\"}");
  const auto minimax = [&](const std::string& s) {
    return parsed("minimax_m2",
                  "<minimax:tool_call><invoke name=\"f\"><parameter name=\"s\">" + s +
                      "</parameter></invoke></minimax:tool_call>",
                  "", options);
  };
  EXPECT_EQ(minimax(" \n a  b \n\n"), "content[] reasoning[] :f{\"s\": \"a  b\"}");
  EXPECT_EQ(minimax(" nu \n"), "content[] reasoning[] :f{\"s\": \"nu\"}");
  EXPECT_EQ(minimax(" Nil\n"), "content[] reasoning[] :f{\"s\": null}");
  EXPECT_EQ(minimax(" \n"), "content[] reasoning[] :f{\"s\": \"\"}");
}

TEST(ToolParsers, PassesOverWhatStandsBetweenParameters) {
  EXPECT_EQ(
      parsed("qwen3_coder", "<function=f>\n<parameter=a>1</parameter>\nand\n<parameter=b>2</parameter>\n</function>"),
      "content[] reasoning[] :f{\"a\": \"1\", \"b\": \"2\"}");
  EXPECT_EQ(parsed("glm45", "<tool_call>f\n<arg_key> a </arg_key>\n<arg_value> some text\n</arg_value></tool_call>"),
            "content[] reasoning[] :f{\"a\": \"some text\"}");
}

TEST(ToolParsers, KeepsWhatAHarmonyAnswerSaysBehindACall) {
  EXPECT_EQ(
      parsed(
          "openai",
          "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary to=functions.f "
          "<|constrain|>json<|message|>{\"a\": 1}<|call|><|start|>assistant<|channel|>final<|message|>Done.<|return|>"),
      "content[Done.] reasoning[A] :f{\"a\": 1}");
}

TEST(ToolParsers, GoesOnBehindALineThatIsNoCall) {
  EXPECT_EQ(parsed("minimax",
                   "<tool_calls>\n{\"name\": \"f\", \"arguments\": {}}\n{bad}\n{\"name\": \"no\"}\n{\"name\": \"g\", "
                   "\"arguments\": {\"a\": 1}}\n</tool_calls>"),
            "content[] reasoning[] :f{} :g{\"a\": 1}");
}

TEST(ToolParsers, FindsTheToolOfACallThatSaysOnlyItsNumber) {
  const std::string open = "<|tool_call_begin|>", arguments = "<|tool_call_argument_begin|>",
                    close = "<|tool_call_end|>";
  const OutputOptions both = with_tools(
      R"([{"name": "f", "parameters": {"properties": {"a": {}, "b": {}}}}, {"name": "g", "parameters": {"properties": {"a": {}}}}])");
  EXPECT_EQ(parsed("kimi_k2", open + "0 " + arguments + "{\"a\": 1, \"b\": 2}" + close, "", both),
            "content[] reasoning[] 0:f{\"a\": 1, \"b\": 2}");
  EXPECT_EQ(parse_output(open + "0" + arguments + "{\"a\": 1}" + close, {"kimi_k2", ""}, both).tool_calls.size(), 0U);
  const OutputOptions one = with_tools(R"([{"name": "f"}])");
  EXPECT_EQ(parsed("kimi_k2", open + "0" + arguments + "{\"a\": 1" + close, "", one),
            "content[] reasoning[] 0:f{\"a\": 1");
  EXPECT_EQ(parse_output(open + "functions.f.0" + arguments + "{}" + close, {"kimi_k2", ""}, one).tool_calls.size(),
            0U);
}

TEST(ToolParsers, TakesArgumentsOutOfOneThatTheToolDoesNotHave) {
  const OutputOptions options =
      with_tools(R"([{"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}])");
  const auto written = [&](const std::string& parameter) {
    return parsed("deepseek_v32",
                  "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=" + parameter +
                      "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
                  "", options);
  };
  EXPECT_EQ(written("\"arguments\" string=\"false\">{\"n\": 1}"), "content[] reasoning[] :f{\"n\": 1}");
  EXPECT_EQ(written("\"input\" string=\"true\">{\"n\": 1}"), "content[] reasoning[] :f{\"n\": 1}");
  EXPECT_EQ(written("\"n\" string=\"true\">42"), "content[] reasoning[] :f{\"n\": 42}");
  EXPECT_EQ(written("\"x\" string=\"true\">42"), "content[] reasoning[] :f{\"x\": \"42\"}");
}

}  // namespace
}  // namespace easydel::text
