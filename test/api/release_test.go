package api

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// The rules use no function that the oldest release does not know.
func TestRulesCompileOnEveryRelease(t *testing.T) {
	t.Parallel()
	documents, err := charts.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		name, root := structural(t, document)
		for _, release := range sandbox.Versions() {
			env := environment.MustBaseEnvSet(version.MustParseGeneric(release))
			if problems := compile(t, root, env, true); len(problems) > 0 {
				t.Errorf("%s on Kubernetes %s:\n%s", name, release, strings.Join(problems, "\n"))
			}
		}
	}
}

// The expressions of the policies use no function that the oldest release does not know.
func TestPoliciesCompileOnEveryRelease(t *testing.T) {
	t.Parallel()
	for _, policy := range policies(t) {
		for _, release := range sandbox.Versions() {
			for _, problem := range compilePolicy(t, policy, environment.MustBaseEnvSet(version.MustParseGeneric(release))) {
				t.Errorf("%s on Kubernetes %s: %s", policy.Name, release, problem)
			}
		}
	}
}

// The conditions under which our webhooks are asked use no function that the
// oldest release does not know.
func TestWebhookConditionsCompileOnEveryRelease(t *testing.T) {
	t.Parallel()
	conditions := webhookConditions(t)
	if len(conditions) == 0 {
		t.Fatal("the chart has no conditions of webhooks")
	}
	for _, release := range sandbox.Versions() {
		compiler := plugincel.NewCompiler(environment.MustBaseEnvSet(version.MustParseGeneric(release)))
		for _, condition := range conditions {
			result := compiler.CompileCELExpression(&condition, plugincel.OptionalVariableDeclarations{}, environment.NewExpressions)
			if result.Error != nil {
				t.Errorf("%s on Kubernetes %s: %v", condition.Expression, release, result.Error)
			}
		}
	}
}

func webhookConditions(t *testing.T) (all []matchconditions.MatchCondition) {
	t.Helper()
	for _, o := range slices.Concat(admission(t, "MutatingWebhookConfiguration"), admission(t, "ValidatingWebhookConfiguration")) {
		// What is read here both kinds have.
		var configuration admissionregistrationv1.ValidatingWebhookConfiguration
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &configuration); err != nil {
			t.Fatal(err)
		}
		for _, webhook := range configuration.Webhooks {
			for _, condition := range webhook.MatchConditions {
				all = append(all, matchconditions.MatchCondition(condition))
			}
		}
	}
	return all
}

// compilePolicy compiles all that a policy evaluates.
func compilePolicy(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, env *environment.EnvSet) (problems []string) {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(env)
	if err != nil {
		t.Fatal(err)
	}
	check := func(expression string, result plugincel.CompilationResult) {
		if result.Error != nil {
			problems = append(problems, expression+": "+result.Error.Error())
		}
	}
	// Every expression may ask the authorizer, but those of messages, and what a policy
	// depends on, if it does.
	params := policy.Spec.ParamKind != nil
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true, HasParams: params}
	for _, variable := range policy.Spec.Variables {
		named := &validating.Variable{Name: variable.Name, Expression: variable.Expression}
		check(variable.Name, compiler.CompileAndStoreVariable(named, options, environment.NewExpressions))
	}
	for _, condition := range policy.Spec.MatchConditions {
		expression := (*matchconditions.MatchCondition)(&condition)
		check(condition.Expression, compiler.CompileCELExpression(expression, options, environment.NewExpressions))
	}
	for _, validation := range policy.Spec.Validations {
		expression := &validating.ValidationCondition{Expression: validation.Expression}
		check(validation.Expression, compiler.CompileCELExpression(expression, options, environment.NewExpressions))
		if validation.MessageExpression == "" {
			continue
		}
		message := &validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression}
		check(validation.MessageExpression, compiler.CompileCELExpression(message, plugincel.OptionalVariableDeclarations{HasParams: params}, environment.NewExpressions))
	}
	return problems
}

// structural reads the schema of a CRD the way the API server does.
func structural(t *testing.T, document []byte) (name string, root *schema.Structural) {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(document, &crd); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	root, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	return crd.Name, root
}

// compile compiles the rules of a schema and everything below it.
func compile(t *testing.T, s *schema.Structural, env *environment.EnvSet, isRoot bool) (problems []string) {
	t.Helper()
	if len(s.XValidations) > 0 {
		const perCallLimit = 1_000_000
		results, err := cel.Compile(s, model.SchemaDeclType(s, isRoot), perCallLimit, env, cel.NewExpressionsEnvLoader())
		if err != nil {
			t.Fatalf("compile: %v", err)
		}
		for i, result := range results {
			if result.Error != nil {
				problems = append(problems, s.XValidations[i].Rule+": "+result.Error.Error())
			}
			if result.MessageExpressionError != nil {
				problems = append(problems, s.XValidations[i].MessageExpression+": "+result.MessageExpressionError.Error())
			}
		}
	}
	for _, property := range s.Properties {
		problems = slices.Concat(problems, compile(t, &property, env, false))
	}
	if s.Items != nil {
		problems = slices.Concat(problems, compile(t, s.Items, env, false))
	}
	return problems
}
