// Command app is the application of the stories on real nodes: it serves HTTP on one port, and
// its flags set how it behaves. GET / returns the name of the pod, /readyz its readiness, and
// /slow?for=2s answers after that time. Its output is also kept with times in a file that
// outlives the kubelet's log.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var (
	address    = flag.String("listen", ":8080", "where it serves")
	readyAfter = flag.Duration("ready-after", 0, "how long it takes to get ready")
	crashAfter = flag.Duration("crash-after", 0, "when it crashes; never if 0")
	deaf       = flag.Bool("deaf", false, "ignore SIGTERM")
	linger     = flag.Duration("linger", 0, "how long it goes on to serve after SIGTERM")
	graceful   = flag.Bool("graceful", false, "end only when every request is answered")
	diary      = flag.String("diary", "", "a file to which it adds what it prints")
	task       = flag.String("task", "", "a line that it prints before it ends, instead of serving")
)

func main() {
	flag.Parse()
	if err := errors.Join(run(), tell("ended")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// tell prints a line, and adds it to the diary with the time.
func tell(line string) error {
	fmt.Println(line)
	if *diary == "" {
		return nil
	}
	file, err := os.OpenFile(*diary, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, time.Now().UTC().Format(time.RFC3339Nano), line)
	return errors.Join(err, file.Close())
}

func run() error {
	if *task != "" {
		return tell(*task)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	server := &http.Server{Addr: *address, Handler: handler(time.Now()), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	if err := tell("serving at " + *address); err != nil {
		return err
	}
	var crash <-chan time.Time
	if *crashAfter > 0 {
		crash = time.After(*crashAfter)
	}
	for {
		select {
		case err := <-served:
			return err
		case <-crash:
			return errors.New("crashed, as -crash-after says")
		case <-signals:
			if err := tell("asked to end"); err != nil {
				return err
			}
			if !*deaf {
				return end(server)
			}
		}
	}
}

// end is what a program makes of SIGTERM.
func end(server *http.Server) error {
	time.Sleep(*linger)
	if !*graceful {
		return server.Close()
	}
	return server.Shutdown(context.Background())
}

func handler(start time.Time) http.Handler {
	name, err := os.Hostname()
	if err != nil {
		name = err.Error()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, name) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if time.Since(start) < *readyAfter {
			http.Error(w, "not ready yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		wait, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		time.Sleep(wait)
		fmt.Fprintln(w, name)
	})
	return mux
}
