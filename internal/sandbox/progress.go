package sandbox

import (
	"strings"
	"sync/atomic"
	"time"
)

// reportEvery is the interval of the progress lines of a build.
const reportEvery = 15 * time.Second

// progress counts the packages that the go command has begun to compile.
type progress struct{ packages atomic.Int64 }

// expects counts a line of standard error that names a package or a downloaded module, and returns
// false for any other.
func (p *progress) expects(line string) bool {
	if strings.HasPrefix(line, "go: downloading ") {
		return true
	}
	isPackage := !strings.ContainsAny(line, " :")
	if isPackage {
		p.packages.Add(1)
	}
	return isPackage
}

// reportProgress prints the progress of a target from time to time, until stopped.
func (b *builder) reportProgress(label string, p *progress) (stop func()) {
	start := time.Now()
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(reportEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				b.say("%s: %d packages compiled, %s", label, p.packages.Load(), time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() {
		close(done)
		<-finished
	}
}
