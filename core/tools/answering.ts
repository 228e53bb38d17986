/** What answers to questions, and bodies of callbacks, need: it is loaded when one comes. */
type Answers = typeof import("./check-answer.ts") & typeof import("./give-answer.ts");

const giving = () => import("./give-answer.ts");
const checking = () => import("./check-answer.ts");

export const giveAnswer: Answers["giveAnswer"] = async (...given) => (await giving()).giveAnswer(...given);

export const checkAnswer: Answers["checkAnswer"] = async (...given) => (await checking()).checkAnswer(...given);

export const schemaIssues: Answers["schemaIssues"] = async (...given) => (await checking()).schemaIssues(...given);
