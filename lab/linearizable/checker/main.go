// Program linearizable decides whether recorded histories are linearizable. A history is linearizable if an order of its
// requests explains every answer, and each request takes effect between its sending and its answer.
//
//	go run . [-real] FILE
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var p protocol
	flag.BoolVar(&p.isReal, "real", false, "by the rules of Resonate's own server")
	flag.Parse()
	file, err := os.Open(flag.Arg(0))
	if err == nil {
		var histories [][]Entry
		if histories, err = read(file); err == nil && report(p, histories) {
			return
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// report checks the histories and prints the result. It returns true if all are linearizable.
func report(p protocol, histories [][]Entry) bool {
	began := time.Now()
	requests, lost, undecided := 0, 0, 0
	var failing [][]Entry
	counts := map[string]int{}
	for _, history := range histories {
		requests += len(history)
		for _, entry := range history {
			if entry.Answer == nil {
				lost++
			} else {
				counts[fmt.Sprint(entry.Kind, " ", entry.Answer.Status)]++
			}
		}
		switch check(p, history) {
		case illegal:
			failing = append(failing, history)
		case unknown:
			undecided++
		}
	}
	fmt.Printf("%d requests in %d histories of one origin, %d lost in a crash; suspended %d, told to go on %d, acquired %d, fulfilled %d; checked in %.1f s\n",
		requests, len(histories), lost, counts["task.suspend 200"], counts["task.suspend 300"], counts["task.acquire 200"], counts["task.fulfill 200"], time.Since(began).Seconds())
	if len(failing) == 0 && undecided == 0 {
		fmt.Println("all are linearizable")
		return true
	}
	fmt.Printf("%d are not linearizable, %d could not be decided in time\n", len(failing), undecided)
	if len(failing) > 0 {
		show(smallest(p, failing))
	}
	return false
}
