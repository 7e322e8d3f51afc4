package gate_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/gate"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// serve returns a client of a server that answers so.
func serve(t *testing.T, answer http.HandlerFunc) *gate.Prometheus {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	p, err := gate.NewPrometheus(server.URL + "/prefix")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func success(kind, result, more string) string {
	return fmt.Sprintf(`{"status": "success", "data": {"resultType": %q, "result": %s}%s}`, kind, result, more)
}

func vector(values ...string) string {
	var samples []string
	for _, value := range values {
		samples = append(samples, fmt.Sprintf(`{"metric": {"a": "b"}, "value": [1435781451.781, %q]}`, value))
	}
	return success("vector", "["+strings.Join(samples, ", ")+"]", "")
}

func TestAnswerOfPrometheusIsYesNoOrUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code int
		body string
		want rollout.Verdict
	}{
		"one":                     {200, vector("1"), rollout.Yes},
		"several":                 {200, vector("1", "0.5", "-3"), rollout.Yes},
		"a zero":                  {200, vector("0"), rollout.No},
		"a zero among others":     {200, vector("1", "0", "1"), rollout.No},
		"a negative zero":         {200, vector("-0"), rollout.No},
		"a scalar":                {200, success("scalar", `[1435781451.781, "1"]`, ""), rollout.Yes},
		"a scalar of zero":        {200, success("scalar", `[1435781451.781, "0"]`, ""), rollout.No},
		"with notes":              {200, success("scalar", `[1435781451.781, "1"]`, `, "infos": ["metric might not be a counter"]`), rollout.Yes},
		"nothing":                 {200, vector(), rollout.Unknown},
		"no result":               {200, success("vector", "null", ""), rollout.Unknown},
		"not a number":            {200, vector("1", "NaN"), rollout.Unknown},
		"a zero and not a number": {200, vector("0", "NaN"), rollout.Unknown},
		"infinite":                {200, vector("+Inf"), rollout.Unknown},
		"a histogram":             {200, success("vector", `[{"metric": {}, "histogram": [1435781451.781, {"count": "60"}]}]`, ""), rollout.Unknown},
		"a text":                  {200, success("string", `[1435781451.781, "1"]`, ""), rollout.Unknown},
		"a matrix":                {200, success("matrix", `[{"metric": {}, "values": [[1435781451.781, "1"]]}]`, ""), rollout.Unknown},
		"a number in place":       {200, success("vector", `[{"metric": {}, "value": [1435781451.781, 1]}]`, ""), rollout.Unknown},
		"with a warning":          {200, success("scalar", `[1435781451.781, "1"]`, `, "warnings": ["a store did not answer"]`), rollout.Unknown},
		"a syntax error":          {400, `{"status": "error", "errorType": "bad_data", "error": "invalid parameter \"query\": 1:3: parse error: unexpected <by>"}`, rollout.Unknown},
		"a login page":            {200, "<html>", rollout.Unknown},
		"a gateway":               {502, "Bad Gateway", rollout.Unknown},
		"success with a failure":  {503, vector("1"), rollout.Unknown},
		"something after it":      {200, vector("1") + "{", rollout.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, func(to http.ResponseWriter, from *http.Request) {
				if from.URL.Path != "/prefix/api/v1/query" || from.PostFormValue("query") != "up == bool 1" {
					t.Errorf("asked %s for %q", from.URL.Path, from.PostFormValue("query"))
				}
				to.WriteHeader(test.code)
				fmt.Fprint(to, test.body)
			})
			got, text := p.Ask(t.Context(), "up == bool 1")
			if got != test.want || (text != "") != (got == rollout.Unknown) {
				t.Errorf("answer is %d, want %d", got, test.want)
			}
			if text != "" {
				golden.Message(t, text)
			}
		})
	}
}

// A Prometheus that answers 1 GiB, at once or slowly, costs at most 1 MiB and 5 seconds.
func TestHugeOrSlowAnswerOfPrometheusIsUnknown(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	huge := serve(t, func(to http.ResponseWriter, _ *http.Request) {
		page := []byte(strings.Repeat(" ", 64<<10))
		for range 1 << 14 {
			n, err := to.Write(page)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	if got, text := huge.Ask(t.Context(), "up"); got != rollout.Unknown || !strings.Contains(text, "1 MiB") {
		t.Errorf("answer is %d: %s", got, text)
	}
	// The rest is in the buffers of the kernel.
	if sent.Load() > 64<<20 {
		t.Errorf("%d bytes were sent", sent.Load())
	}
	slow := serve(t, func(to http.ResponseWriter, from *http.Request) {
		for from.Context().Err() == nil {
			if _, err := to.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(to).Flush()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, text := slow.Ask(ctx, "up"); got != rollout.Unknown || text == "" {
		t.Errorf("answer is %d: %s", got, text)
	}
}

// A redirect is not followed: it could lead to any service that the manager reaches.
func TestRedirectOfPrometheusIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, code := range []int{301, 302, 303, 307, 308} {
		var elsewhere atomic.Bool
		target := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
			elsewhere.Store(true)
			fmt.Fprint(to, vector("1"))
		}))
		t.Cleanup(target.Close)
		p := serve(t, func(to http.ResponseWriter, from *http.Request) { http.Redirect(to, from, target.URL, code) })
		if got, _ := p.Ask(t.Context(), "up"); got != rollout.Unknown || elsewhere.Load() {
			t.Errorf("%d: answer is %d, followed: %t", code, got, elsewhere.Load())
		}
	}
}

func TestPrometheusThatIsNotThereIsUnknown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	p, err := gate.NewPrometheus(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	first, text := p.Ask(t.Context(), "up")
	if second, again := p.Ask(t.Context(), "up"); first != rollout.Unknown || second != first || text != again {
		t.Errorf("answers are %d %q and %d %q", first, text, second, again)
	}
	golden.Message(t, text)
	_, text = (*gate.Prometheus)(nil).Ask(t.Context(), "up")
	golden.Message(t, text)
}

func TestURLOfPrometheusIsChecked(t *testing.T) {
	t.Parallel()
	for url, valid := range map[string]bool{
		"http://prometheus.monitoring.svc:9090": true, "https://thanos/prefix/": true,
		"": false, "prometheus:9090": false, "file:///etc/passwd": false, "http://": false, "http://a/?query=up": false, "http://a b": false,
	} {
		if _, err := gate.NewPrometheus(url); (err == nil) != valid {
			t.Errorf("%q: %v", url, err)
		}
	}
}
