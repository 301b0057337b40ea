import { describe, expect, it } from "vitest";
import { answersOf, prefilled, questionsLeftOut, questionsOf, unanswered } from "./questions";

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

  it("may have options that are numbers, and are answered by those", () => {
    const asked = questionsOf({
      properties: {
        level: { type: "integer", oneOf: [{ const: 1, title: "Low" }, { const: 2 }] },
        port: { enum: [80, 443] },
        ports: { type: "array", items: { enum: [80, 443] } },
      },
    });
    const options = asked.map((one) => one.options.map((it) => it.label));
    expect(options).toEqual([
      ["Low", "2"],
      ["80", "443"],
      ["80", "443"],
    ]);
    const given = { level: ["2"], port: ["443"], ports: ["80"] };
    expect(answersOf(asked, given)).toEqual({ level: 2, port: 443, ports: [80] });
  });

  it("are whole numbers where an agent wants them whole", () => {
    const asked = questionsOf({
      properties: { age: { type: "integer" }, ratio: { type: "number" } },
      required: ["age", "ratio"],
    });
    expect(unanswered(asked, { age: ["1.5"], ratio: ["1.5"] })).toBe(1);
    expect(answersOf(asked, { age: ["36"], ratio: ["0.5"] })).toEqual({ age: 36, ratio: 0.5 });
  });

  it("are shown as many as other clients are asked, and those beyond are counted", () => {
    const options = Array.from({ length: 101 }, (_, at) => `option ${at}`);
    const list = Array.from({ length: 33 }, (_, at) => ({ question: `Question ${at}`, options }));
    expect(questionsOf(list).length).toBe(32);
    expect(questionsOf(list)[0]?.options.length).toBe(100);
    expect(questionsOf(list)[0]?.optionsLeftOut).toBe(1);
    expect(questionsLeftOut(list)).toBe(1);
    const field = { type: "string", enum: options };
    const properties = Object.fromEntries(list.map((it) => [it.question, field]));
    expect(questionsOf({ properties }).length).toBe(32);
    expect(questionsOf({ properties })[0]?.options.length).toBe(100);
    expect(questionsLeftOut({ properties })).toBe(1);
    // What is no question, or is asked twice, is not missing.
    const few = list.slice(0, 32).map((it) => ({ ...it, options: [null, ...options.slice(1)] }));
    expect(questionsOf([null, few[0], ...few]).length).toBe(32);
    expect(questionsLeftOut([...few, few[0], null])).toBe(0);
    expect(questionsOf(few)[0]?.optionsLeftOut).toBe(0);
  });
});
