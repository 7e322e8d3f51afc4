package podclass_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

func TestOnUpgrade(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		labels   map[string]string
		want     bool
		problems []string
	}{
		"no label":               {nil, false, nil},
		"stay":                   {map[string]string{v1alpha1.OnUpgradeLabel: "stay"}, true, nil},
		"stay in capitals":       {map[string]string{v1alpha1.OnUpgradeLabel: "STAY"}, true, nil},
		"another value":          {map[string]string{v1alpha1.OnUpgradeLabel: "stay-here"}, false, []string{v1alpha1.OnUpgradeLabel}},
		"an empty value":         {map[string]string{v1alpha1.OnUpgradeLabel: ""}, false, []string{v1alpha1.OnUpgradeLabel}},
		"a word of boolean":      {map[string]string{v1alpha1.OnUpgradeLabel: "true"}, false, []string{v1alpha1.OnUpgradeLabel}},
		"somebody else's labels": {map[string]string{"on-upgrade": "stay"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problems := podclass.OnUpgrade(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}})
			if got != test.want {
				t.Errorf("OnUpgrade() = %v, want %v", got, test.want)
			}
			checkProblems(t, problems, test.problems...)
		})
	}
}

const (
	unreachable = corev1.TaintNodeUnreachable
	notReady    = corev1.TaintNodeNotReady
)

func tolerates(key string, operator corev1.TolerationOperator, seconds ...int64) corev1.Toleration {
	t := corev1.Toleration{Key: key, Operator: operator, Effect: corev1.TaintEffectNoExecute}
	if len(seconds) > 0 {
		t.TolerationSeconds = &seconds[0]
	}
	return t
}

func TestEndurance(t *testing.T) {
	t.Parallel()
	type tolerations []corev1.Toleration
	const exists, equal = corev1.TolerationOpExists, corev1.TolerationOpEqual
	with := func(of corev1.Toleration, change func(*corev1.Toleration)) corev1.Toleration {
		change(&of)
		return of
	}
	everything := corev1.Toleration{Operator: exists}
	for name, test := range map[string]struct {
		tolerations tolerations
		want        time.Duration
		taint       string
	}{
		"none":                        {nil, 0, unreachable},
		"the usual ones":              {tolerations{tolerates(notReady, exists, 300), tolerates(unreachable, exists, 300)}, 5 * time.Minute, unreachable},
		"only unreachable":            {tolerations{tolerates(unreachable, exists, 300)}, 0, notReady},
		"only not-ready":              {tolerations{tolerates(notReady, exists)}, 0, unreachable},
		"the shorter one counts":      {tolerations{tolerates(notReady, exists, 60), tolerates(unreachable, exists, 900)}, time.Minute, notReady},
		"for ever":                    {tolerations{tolerates(notReady, exists), tolerates(unreachable, exists)}, podclass.Forever, unreachable},
		"one of them for ever":        {tolerations{tolerates(notReady, exists, 900), tolerates(unreachable, exists)}, 15 * time.Minute, notReady},
		"everything":                  {tolerations{everything}, podclass.Forever, unreachable},
		"everything, with a value":    {tolerations{{Operator: equal, Value: "x"}}, 0, unreachable},
		"everything of no value":      {tolerations{{Operator: equal}}, podclass.Forever, unreachable},
		"everything that executes":    {tolerations{tolerates("", exists, 900)}, 15 * time.Minute, unreachable},
		"everything but executing":    {tolerations{with(everything, func(t *corev1.Toleration) { t.Effect = corev1.TaintEffectNoSchedule })}, 0, unreachable},
		"any effect":                  {tolerations{{Key: unreachable, Operator: exists}, {Key: notReady, Operator: exists}}, podclass.Forever, unreachable},
		"equal without a value":       {tolerations{tolerates(unreachable, equal, 900), tolerates(notReady, equal, 900)}, 15 * time.Minute, unreachable},
		"no operator is equal":        {tolerations{tolerates(unreachable, "", 900), tolerates(notReady, "", 900)}, 15 * time.Minute, unreachable},
		"equal with a value":          {tolerations{with(tolerates(unreachable, equal, 900), func(t *corev1.Toleration) { t.Value = "x" }), tolerates(notReady, exists)}, 0, unreachable},
		"exists with a value":         {tolerations{with(tolerates("", exists, 900), func(t *corev1.Toleration) { t.Value = "x" })}, 15 * time.Minute, unreachable},
		"a comparison of numbers":     {tolerations{with(everything, func(t *corev1.Toleration) { t.Operator = corev1.TolerationOpLt })}, 0, unreachable},
		"another key":                 {tolerations{tolerates("disk", exists)}, 0, unreachable},
		"no time at all":              {tolerations{tolerates("", exists, 0)}, 0, unreachable},
		"a time before":               {tolerations{tolerates("", exists, -1)}, 0, unreachable},
		"more than can be counted":    {tolerations{tolerates("", exists, math.MaxInt64)}, podclass.Forever, unreachable},
		"the first that matches":      {tolerations{tolerates(unreachable, exists, 60), tolerates("", exists)}, time.Minute, unreachable},
		"the first that matches, too": {tolerations{tolerates("", exists), tolerates(unreachable, exists, 60)}, podclass.Forever, unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, taint := podclass.Endurance(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: test.tolerations}})
			if got != test.want || taint != test.taint {
				t.Errorf("Endurance() = %s of %s, want %s of %s", got, taint, test.want, test.taint)
			}
		})
	}
}
