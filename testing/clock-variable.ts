/** The variable that tells a process where the test's clock is: a port on loopback. */
export const CLOCK_VARIABLE = "DURABLE_TEST_CLOCK";
