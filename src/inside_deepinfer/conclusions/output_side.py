"""What chapter 15 concludes. The parser is imported late: it loads a tokenizer, the registry does not."""

from inside_deepinfer.conclusions.registry import conclusion


@conclusion("output-side.ids-keep-them-apart", "By token ids, no marker that the model only spelled ends a thought or calls a tool, "
                                               "and a stop string counts in the answer only.")
def _ids_keep_them_apart() -> bool:
    from inside_deepinfer.tokens.output import OUTPUTS, by_ids, meant

    return all(by_ids(output) == meant(output) for output in OUTPUTS.values())


@conclusion("output-side.text-cannot-tell", "A real marker and a spelled one decode to the same characters, so no receiver of text "
                                            "can treat both rightly.")
def _text_cannot_tell() -> bool:
    from inside_deepinfer.tokens.alphabet import text_of
    from inside_deepinfer.tokens.output import Mark, ids_of

    real, spelled = ids_of([Mark("</think>")]), ids_of(["</think>"])
    return real != spelled and text_of(real) == text_of(spelled)


@conclusion("output-side.spelled-differ", "Every output in which a marker is spelled where a parser acts on it ends differently as text; "
                                          "no other does.")
def _spelled_differ() -> bool:
    from inside_deepinfer.tokens.output import OUTPUTS, by_text, meant, spelled_where_it_counts

    return all((by_text(output) != meant(output)) == spelled_where_it_counts(output) for output in OUTPUTS.values())


@conclusion("output-side.quoted-call-runs", "A tool call that the model only quotes is run when its output is delivered as text, and "
                                            "not when it is delivered as ids.")
def _quoted_call_runs() -> bool:
    from inside_deepinfer import catalogue

    return catalogue.value("quoted_calls_by_text") == 2 and catalogue.value("quoted_calls_by_ids") == 0


@conclusion("output-side.stop-moves", "A spelled end of thought also moves a stop string from the thought into the answer, and the "
                                      "real answer is lost.")
def _stop_moves() -> bool:
    from inside_deepinfer.tokens.output import OUTPUTS, by_ids, by_text

    output = OUTPUTS["stop-after-spelled-end"]
    return by_text(output).content == "" and by_ids(output).content == "one two"


@conclusion("output-side.cut-decides", "A receiver that looks at each chunk alone gives different answers for the same output, "
                                       "depending on where the network cut it.")
def _cut_decides() -> bool:
    from inside_deepinfer.tokens.chunks import at_cut, cuts

    found = [at_cut(cut) for cut in cuts()]
    return len({parsed["chunkwise"] for parsed in found}) > 1 and len({parsed["buffered"] for parsed in found}) == 1


@conclusion("output-side.replay-injects", "Sent back as history and encoded as one string, a quoting answer puts control tokens into "
                                          "the next prompt; through deepseek-recipe it puts none.")
def _replay_injects() -> bool:
    from inside_deepinfer.tokens.output import OUTPUTS, by_ids, replayed

    answer = by_ids(OUTPUTS["quoted-call"]).content
    return replayed(answer, "whole-prompt") > 0 == replayed(answer, "recipe")
