package lab

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU is the CPU time that everybody whom the lab has started and who still runs
// has used so far: the control plane and the contender. It is 0 where there is no
// proc filesystem to tell.
func (l *Lab) CPU() time.Duration {
	var sum time.Duration
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended.
		}
		if parent, used := parseStat(string(text)); parent == os.Getpid() {
			sum += used
		}
	}
	return sum
}

// parseStat returns whose child a process is and what CPU time it has used, which
// Linux counts in hundredths of a second. The second field is a name in
// parentheses, which may have blanks in it.
func parseStat(text string) (parent int, used time.Duration) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, 0
	}
	var numbers [3]int
	for i, at := range []int{1, 11, 12} {
		number, err := strconv.Atoi(fields[at])
		if err != nil {
			return 0, 0
		}
		numbers[i] = number
	}
	return numbers[0], time.Duration(numbers[1]+numbers[2]) * 10 * time.Millisecond
}
