// Package validate decides the answer to an admission request: allowed, allowed with warnings,
// or refused. Its input includes everything it needs, such as the rights of the author. A
// refusal names what was refused, to whom, and what would help. Warnings never stop a request,
// and what cannot be understood is never allowed.
package validate
