package gate

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

const (
	// timeout bounds a question, maxAnswer the bytes of an answer.
	timeout, maxAnswer = 5 * time.Second, 1 << 20
	// maxText bounds what is shown of a text of Prometheus, in bytes.
	maxText = 200
	// suggestion is a query that always returns a sample.
	suggestion = `(count(ALERTS{severity="critical",alertstate="firing"}) or vector(0)) == bool 0`
)

// Prometheus asks queries of one server.
type Prometheus struct {
	query  string // a URL
	client *http.Client
}

// NewPrometheus returns a client of the server at a URL, without the path of its API.
//
// Errors: this is not an HTTP URL.
func NewPrometheus(server string) (*Prometheus, error) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.RawQuery != "" {
		return nil, errors.New("must be a URL such as http://prometheus.monitoring.svc:9090")
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: time.Minute, MaxIdleConns: 4}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Prometheus{
		query:  parsed.JoinPath("api/v1/query").String(),
		client: &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: stay},
	}, nil
}

// Ask returns whether a query opens a gate. If that is unknown, the text says why; it is the same for
// the same reason.
func (p *Prometheus) Ask(ctx context.Context, query string) (verdict rollout.Verdict, text string) {
	if p == nil {
		return rollout.Unknown, "the manager knows no Prometheus. Set the chart value rollouts.prometheusURL."
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	form := url.Values{"query": {query}, "timeout": {timeout.String()}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.query, strings.NewReader(form.Encode()))
	if err != nil {
		return rollout.Unknown, "the query cannot be sent."
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := p.client.Do(request)
	if err != nil {
		return rollout.Unknown, "Prometheus cannot be reached: " + causeOf(err) + "."
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return rollout.Unknown, "the answer of Prometheus cannot be read: " + causeOf(err) + "."
	case len(body) > maxAnswer:
		return rollout.Unknown, "the query returns more than 1 MiB. Use a query such as " + suggestion
	}
	return read(response.StatusCode, body)
}

// causeOf returns a cause that is the same each time.
func causeOf(err error) string {
	var network net.Error
	var number syscall.Errno
	var host *net.DNSError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &host):
		return "host " + excerpt.Line(host.Name, maxText) + " cannot be resolved"
	case errors.As(err, &authority), errors.As(err, &invalid):
		return "its certificate is not trusted"
	case errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("no answer within %s", timeout)
	case errors.As(err, &number):
		return number.Error()
	}
	return "the connection failed"
}

// answer is one of the query API of Prometheus.
type answer struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Error     string   `json:"error"`
	Warnings  []string `json:"warnings"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// read returns what an answer means.
func read(code int, body []byte) (verdict rollout.Verdict, text string) {
	var a answer
	switch err := json.Unmarshal(body, &a); {
	case err == nil && a.Status == "error":
		return rollout.Unknown, "Prometheus refuses the query: " + excerpt.Line(a.ErrorType+": "+a.Error, maxText) + "."
	case err != nil || code != http.StatusOK || a.Status != "success":
		return rollout.Unknown, fmt.Sprintf("the answer is not one of the Prometheus API (HTTP status %d).", code)
	case len(a.Warnings) > 0:
		return rollout.Unknown, "the result may be incomplete: " + excerpt.Line(a.Warnings[0], maxText) + "."
	}
	values, err := valuesOf(&a)
	if err != nil {
		return rollout.Unknown, err.Error() + ". Use a query such as " + suggestion
	}
	for _, value := range values {
		if value == 0 {
			return rollout.No, ""
		}
	}
	return rollout.Yes, ""
}

// valuesOf returns the values of all samples, at least one.
func valuesOf(a *answer) (values []float64, err error) {
	var samples []struct{ Value sample }
	switch a.Data.ResultType {
	case "vector":
		err = json.Unmarshal(a.Data.Result, &samples)
	case "scalar":
		samples = append(samples, struct{ Value sample }{})
		err = json.Unmarshal(a.Data.Result, &samples[0].Value)
	default:
		return nil, errors.New("the query returns no instant vector")
	}
	switch {
	case err != nil:
		return nil, errors.New("the query returns something that is not a number")
	case len(samples) == 0:
		return nil, errors.New("the query returns nothing")
	}
	for _, one := range samples {
		number, err := one.Value.number()
		if err != nil {
			return nil, err
		}
		values = append(values, number)
	}
	return values, nil
}

// sample is a time and a value, which is a text.
type sample []json.RawMessage

func (s sample) number() (float64, error) {
	var text string
	if len(s) != 2 || json.Unmarshal(s[1], &text) != nil {
		return 0, errors.New("the query returns something that is not a number")
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, errors.New("the query returns a value that is not a number")
	}
	return number, nil
}
