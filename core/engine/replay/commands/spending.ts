/**
 * The amounts that a job has spent of its budgets. The sums follow from the function's calls in their order, which is the
 * same in every replay: they need no records of their own, and nothing is counted twice.
 */
import { BudgetExceeded, type Budgets, NondeterminismError, type Spent } from "../../../author/context.ts";

interface Account {
  spent: number;
  limit: number;
  /** The question whether more may be spent, while it is open. */
  openQuestion?: Promise<void>;
  /** The user did not allow more, or the job was cancelled or late before the answer: nobody is asked again. */
  isRefused?: boolean;
}

export class Spending {
  readonly #budgets: Budgets;
  readonly #accounts = new Map<string, Account>();

  constructor(budgets: Budgets = {}, before: Record<string, { spent: number; limit: number }> = {}) {
    this.#budgets = budgets;
    for (const [of, { spent, limit }] of Object.entries(before)) this.#accounts.set(of, { spent, limit });
  }

  /** Adds to the amount spent. @throws {NondeterminismError} for an unknown budget or an invalid amount */
  add(of: string, amount: number): void {
    if (!Object.hasOwn(this.#budgets, of)) {
      const budgetNames = Object.keys(this.#budgets).join(", ") || "none";
      throw new NondeterminismError(
        `ctx.spend: there is no budget of ${JSON.stringify(of)}. The definition names its budgets: budget: { ${budgetNames === "none" ? "tokens: { limit: 100_000 }" : budgetNames} }`,
      );
    }
    if (!(Number.isFinite(amount) && amount >= 0)) {
      throw new NondeterminismError(`ctx.spend: ${amount} is not an amount of ${of}; it takes a number from 0 on`);
    }
    this.#account(of).spent += amount;
  }

  #spentOf(of: string): Spent {
    const { spent, limit } = this.#account(of);
    return { spent, limit, left: Math.max(limit - spent, 0) };
  }

  /** The amounts spent of each budget; undefined before the first use of any. */
  get all(): Record<string, Spent> | undefined {
    return this.#accounts.size === 0
      ? undefined
      : Object.fromEntries([...this.#accounts.keys()].map((of) => [of, this.#spentOf(of)]));
  }

  /**
   * Resolves when the amount spent is within the budget. `ask` asks one question for all calls that wait for it, and
   * resolves with whether the budget may grow to `limit`.
   *
   * @throws {BudgetExceeded} if the budget may not grow
   */
  async within(of: string, ask: (limit: number, spent: Spent) => Promise<boolean>): Promise<Spent> {
    const account = this.#account(of);
    while (account.spent > account.limit) {
      if (this.#budgets[of]?.onExceeded !== "ask") throw new BudgetExceeded(of, this.#spentOf(of));
      if (account.isRefused) throw new BudgetExceeded(of, this.#spentOf(of), "more was not allowed");
      account.openQuestion ??= this.#askForMore(of, account, ask);
      await account.openQuestion;
    }
    return this.#spentOf(of);
  }

  async #askForMore(
    of: string,
    account: Account,
    ask: (limit: number, spent: Spent) => Promise<boolean>,
  ): Promise<void> {
    const base = this.#budgets[of]?.limit ?? 0;
    const limit = base > 0 ? Math.ceil(account.spent / base) * base : account.spent;
    let isAllowed = false;
    try {
      isAllowed = await ask(limit, this.#spentOf(of));
    } finally {
      account.isRefused = !isAllowed;
      delete account.openQuestion;
    }
    if (isAllowed) account.limit = limit;
  }

  #account(of: string): Account {
    const account = this.#accounts.get(of) ?? { spent: 0, limit: this.#budgets[of]?.limit ?? 0 };
    this.#accounts.set(of, account);
    return account;
  }
}
