import { describe, expect, it } from "vitest";
import { answersOf, prefilled, questionsOf, unanswered } from "./questions";

describe("questions of an agent", () => {
  it("are read from a list, whatever else is in it", () => {
    expect(questionsOf("nonsense")).toEqual([]);
    expect(questionsOf(null)).toEqual([]);
    const asked = questionsOf([
      null,
      7,
      { question: "Which?", options: [{ label: "A", description: "first" }, "B", null] },
      { question: "Which?", options: [] },
      { question: "Some?", multiSelect: true, options: ["X", "Y"] },
      { question: "Say it", placeholder: "words", prefill: "as it was", multiline: true },
    ]);
    expect(asked.map((one) => [one.key, one.many])).toEqual([
      ["Which?", false],
      ["Some?", true],
      ["Say it", false],
    ]);
    expect(asked[0]?.options.map((it) => [it.label, it.description])).toEqual([
      ["A", "first"],
      ["B", null],
    ]);
    expect(asked[2]?.own).toEqual({ placeholder: "words", isLong: true });
    expect(prefilled(asked)).toEqual({ "Say it": ["as it was"] });
  });

  it("want an answer each, and are answered in one text each", () => {
    const asked = questionsOf([
      { question: "Which?", options: ["A"] },
      { question: "Some?", multiSelect: true, options: ["X", "Y"] },
    ]);
    expect(unanswered(asked, {})).toBe(2);
    expect(unanswered(asked, { "Which?": ["A"], "Some?": ["  "] })).toBe(1);
    const given = { "Which?": ["A"], "Some?": ["X", "own words"], gone: ["?"] };
    expect(unanswered(asked, given)).toBe(0);
    expect(answersOf(asked, given)).toEqual({ "Which?": "A", "Some?": "X, own words" });
  });

  it("may be the fields of a schema, and are answered in its types", () => {
    const asked = questionsOf({
      type: "object",
      properties: {
        name: { type: "string", title: "Your name", description: "As it is written" },
        age: { type: "integer" },
        keep: { type: "boolean", default: true },
        colour: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] },
        many: { type: "array", items: { anyOf: [{ const: "a", title: "Ann" }] } },
        odd: null,
      },
      required: ["name", "age"],
    });
    expect(asked.map((one) => one.text)).toEqual(["Your name", "age", "keep", "colour", "many"]);
    expect(asked[0]?.hint).toBe("As it is written");
    expect(asked[3]?.own).toBeNull();
    expect(asked[3]?.options[1]).toMatchObject({ label: "Green", value: "g" });
    expect(unanswered(asked, { name: ["Ada"], age: ["many"] })).toBe(1);
    const given = { ...prefilled(asked), name: ["Ada"], age: ["36"], colour: ["g"], many: ["a"] };
    expect(unanswered(asked, given)).toBe(0);
    expect(answersOf(asked, given)).toEqual({
      name: "Ada",
      age: 36,
      keep: true,
      colour: "g",
      many: ["a"],
    });
  });
});
