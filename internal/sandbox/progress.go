package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// reportEvery is the interval of the progress lines of a build.
const reportEvery = 15 * time.Second

// progress counts modules and packages of a target: seconds alone do not show whether half of it is
// done.
type progress struct {
	start time.Time
	mains []string // the packages of the binaries

	mu         sync.Mutex
	downloaded int
	missing    map[string]bool // packages that are not in the build cache; nil until that is known
	begun      int             // how many of them are compiled, or were
}

func newProgress(mains []string) *progress { return &progress{start: time.Now(), mains: mains} }

// find lists the packages to compile, for which modules may have to be downloaded. The go command
// counts a package that imports a missing one as missing.
func (p *progress) find(ctx context.Context, dir, flag string) error {
	args := []string{"list", flag, "-deps", "-f", `{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}`}
	out, err := runGo(ctx, dir, p.expects, append(args, p.mains...)...)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missing = map[string]bool{}
	for _, pkg := range strings.Fields(string(out)) {
		p.missing[pkg] = true
	}
	return nil
}

// expects counts a line of standard error that shows progress, and returns false for any other.
func (p *progress) expects(line string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.downloaded++
	case p.missing[line]:
		p.begun++
	case !slices.Contains(p.mains, line):
		return false
	}
	return true
}

// String describes the progress.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	so := time.Since(p.start).Round(time.Second)
	switch all := len(p.missing); {
	case p.missing == nil:
		return fmt.Sprintf("downloading modules, %d so far, %s", p.downloaded, so)
	case p.begun == 0 && all > 0:
		return fmt.Sprintf("%d packages to compile", all)
	case p.begun < all:
		return fmt.Sprintf("compiling package %d of %d, %s", p.begun, all, so)
	default:
		return fmt.Sprintf("everything is compiled, linking, %s", so)
	}
}

// reportProgress prints the progress of a target from time to time, until stopped.
func (b *builder) reportProgress(label string, p fmt.Stringer) (stop func()) {
	ticker := time.NewTicker(reportEvery)
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				b.say("%s %s", label, p)
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-finished
	}
}
