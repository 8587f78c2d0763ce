// Command interop answers questions about certificates with Go's own libraries, so that the tests beside it can compare.
// It reads a JSON array of questions from standard input and writes a JSON array of answers to standard output.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

type question struct {
	Op string

	// Certificates and keys as PEM or DER.
	Cert  string
	Key   string
	DER   []byte
	Roots string

	// verify
	Intermediates string
	Host          string
	Usage         string
	Now           time.Time

	// issue
	Template template

	// pem, ip
	Text string
}

type template struct {
	Kind       string
	Serial     string
	NotBefore  time.Time
	NotAfter   time.Time
	CommonName string
	Groups     []string
	UID        string
	DNSNames   []string
	IPs        []string
}

type answer struct {
	Error  string  `json:"error,omitempty"`
	OK     bool    `json:"ok"`
	DER    []byte  `json:"der,omitempty"`
	Text   string  `json:"text,omitempty"`
	Blocks []block `json:"blocks,omitempty"`
	Forms  []form  `json:"forms,omitempty"`
	Fields *fields `json:"fields,omitempty"`
}

type block struct {
	Type    string `json:"type"`
	Headers bool   `json:"headers"`
	Bytes   []byte `json:"bytes"`
}

type form struct {
	Name string `json:"name"`
	PEM  string `json:"pem"`
}

type fields struct {
	CommonName    string   `json:"commonName"`
	Organizations []string `json:"organizations"`
	NotBefore     int64    `json:"notBefore"`
	NotAfter      int64    `json:"notAfter"`
	IsCA          bool     `json:"isCA"`
	DNSNames      []string `json:"dnsNames"`
	IPAddresses   []string `json:"ipAddresses"`
	SubjectKeyID  []byte   `json:"subjectKeyId"`
	AuthorityID   []byte   `json:"authorityKeyId"`
}

var operations = map[string]func(question) (answer, error){
	"keypair":    keyPair,
	"verify":     verify,
	"issue":      issue,
	"parse":      parse,
	"request":    request,
	"newRequest": newRequest,
	"keyForms":   keyForms,
	"pem":        decodePEM,
	"ip":         parseIP,
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := make([]answer, len(questions))
	for i, q := range questions {
		run, known := operations[q.Op]
		if !known {
			fmt.Fprintf(os.Stderr, "unknown operation %q\n", q.Op)
			os.Exit(1)
		}
		a, err := run(q)
		if err != nil {
			a.Error = err.Error()
		}
		a.OK = err == nil
		answers[i] = a
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// keyPair asks crypto/tls whether certificate and key belong together.
func keyPair(q question) (answer, error) {
	_, err := tls.X509KeyPair([]byte(q.Cert), []byte(q.Key))
	return answer{}, err
}

func verify(q question) (answer, error) {
	leaf, err := first(q.Cert)
	if err != nil {
		return answer{}, err
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(q.Roots))
	intermediates.AppendCertsFromPEM([]byte(q.Intermediates))
	usage := map[string]x509.ExtKeyUsage{
		"any":        x509.ExtKeyUsageAny,
		"clientAuth": x509.ExtKeyUsageClientAuth,
		"serverAuth": x509.ExtKeyUsageServerAuth,
	}[q.Usage]
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		DNSName:       q.Host,
		CurrentTime:   q.Now,
		KeyUsages:     []x509.ExtKeyUsage{usage},
	})
	return answer{}, err
}

// issue makes a certificate for the public key of q.Cert, signed by q.Roots and q.Key: the rules of spec 10, section 5,
// written down a second time and carried out by crypto/x509.
func issue(q question) (answer, error) {
	ours, err := first(q.Cert)
	if err != nil {
		return answer{}, err
	}
	signer, err := first(q.Roots)
	if err != nil {
		return answer{}, err
	}
	key, err := privateKey(q.Key)
	if err != nil {
		return answer{}, err
	}
	serial, valid := new(big.Int).SetString(q.Template.Serial, 10)
	if !valid {
		return answer{}, fmt.Errorf("serial %q", q.Template.Serial)
	}
	cert := &x509.Certificate{
		SerialNumber:          serial,
		NotBefore:             q.Template.NotBefore,
		NotAfter:              q.Template.NotAfter,
		Subject:               pkix.Name{CommonName: q.Template.CommonName},
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
	if ours.PublicKeyAlgorithm == x509.RSA {
		cert.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	keyID, err := subjectKeyID(ours.PublicKey)
	if err != nil {
		return answer{}, err
	}
	switch q.Template.Kind {
	case "signer":
		cert.IsCA = true
		cert.KeyUsage |= x509.KeyUsageCertSign
		cert.SubjectKeyId = keyID
		cert.AuthorityKeyId = keyID
		signer = cert
	case "intermediate":
		cert.IsCA = true
		cert.KeyUsage |= x509.KeyUsageCertSign
		cert.SubjectKeyId = keyID
	case "serving":
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		cert.SubjectKeyId = keyID
	case "client":
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		cert.Subject.Organization = q.Template.Groups
		cert.Subject.SerialNumber = q.Template.UID
	case "peer":
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		cert.SubjectKeyId = keyID
	default:
		return answer{}, fmt.Errorf("kind %q", q.Template.Kind)
	}
	cert.DNSNames = q.Template.DNSNames
	for _, ip := range q.Template.IPs {
		cert.IPAddresses = append(cert.IPAddresses, net.ParseIP(ip))
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, signer, ours.PublicKey, key)
	return answer{DER: der}, err
}

func subjectKeyID(public any) ([]byte, error) {
	var input []byte
	switch key := public.(type) {
	case *rsa.PublicKey:
		input = key.N.Bytes()
	case *ecdsa.PublicKey:
		exchange, err := key.ECDH()
		if err != nil {
			return nil, err
		}
		input = exchange.Bytes()
	case ed25519.PublicKey:
		input = key
	default:
		return nil, fmt.Errorf("public key of type %T", public)
	}
	sum := sha1.Sum(input)
	return sum[:], nil
}

func parse(q question) (answer, error) {
	cert, err := x509.ParseCertificate(q.DER)
	if err != nil {
		return answer{}, err
	}
	ips := []string{}
	for _, ip := range cert.IPAddresses {
		ips = append(ips, ip.String())
	}
	return answer{Fields: &fields{
		CommonName:    cert.Subject.CommonName,
		Organizations: append([]string{}, cert.Subject.Organization...),
		NotBefore:     cert.NotBefore.UnixMilli(),
		NotAfter:      cert.NotAfter.UnixMilli(),
		IsCA:          cert.IsCA,
		DNSNames:      append([]string{}, cert.DNSNames...),
		IPAddresses:   ips,
		SubjectKeyID:  cert.SubjectKeyId,
		AuthorityID:   cert.AuthorityKeyId,
	}}, nil
}

// request checks a certificate request that we made.
func request(q question) (answer, error) {
	csr, err := x509.ParseCertificateRequest(q.DER)
	if err != nil {
		return answer{}, err
	}
	if err := csr.CheckSignature(); err != nil {
		return answer{}, err
	}
	ips := []string{}
	for _, ip := range csr.IPAddresses {
		ips = append(ips, ip.String())
	}
	return answer{Fields: &fields{
		CommonName:    csr.Subject.CommonName,
		Organizations: csr.Subject.Organization,
		DNSNames:      csr.DNSNames,
		IPAddresses:   ips,
	}}, nil
}

// newRequest makes a certificate request for us to read.
func newRequest(q question) (answer, error) {
	key, err := privateKey(q.Key)
	if err != nil {
		return answer{}, err
	}
	csr := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: q.Template.CommonName, Organization: q.Template.Groups},
		DNSNames: q.Template.DNSNames,
	}
	for _, ip := range q.Template.IPs {
		csr.IPAddresses = append(csr.IPAddresses, net.ParseIP(ip))
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, csr, key)
	return answer{DER: der}, err
}

// keyForms writes a key in every form Go knows.
func keyForms(q question) (answer, error) {
	key, err := privateKey(q.Key)
	if err != nil {
		return answer{}, err
	}
	var forms []form
	add := func(label string, der []byte) {
		forms = append(forms, form{label, string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))})
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		add("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return answer{}, err
		}
		add("EC PRIVATE KEY", der)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return answer{}, err
	}
	add("PRIVATE KEY", der)
	return answer{Forms: forms}, nil
}

// decodePEM reads blocks until there are none left.
func decodePEM(q question) (answer, error) {
	blocks := []block{}
	for rest := []byte(q.Text); len(rest) > 0; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		blocks = append(blocks, block{b.Type, len(b.Headers) > 0, b.Bytes})
	}
	return answer{Blocks: blocks}, nil
}

func parseIP(q question) (answer, error) {
	ip := net.ParseIP(q.Text)
	if ip == nil {
		return answer{}, fmt.Errorf("not an IP address")
	}
	return answer{Text: ip.String()}, nil
}

func first(text string) (*x509.Certificate, error) {
	b, _ := pem.Decode([]byte(text))
	if b == nil {
		return nil, fmt.Errorf("no PEM block")
	}
	return x509.ParseCertificate(b.Bytes)
}

func privateKey(text string) (crypto.Signer, error) {
	b, _ := pem.Decode([]byte(text))
	if b == nil {
		return nil, fmt.Errorf("no PEM block")
	}
	if key, err := x509.ParsePKCS1PrivateKey(b.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(b.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return nil, err
	}
	signer, isSigner := key.(crypto.Signer)
	if !isSigner {
		return nil, fmt.Errorf("key of type %T does not sign", key)
	}
	return signer, nil
}
