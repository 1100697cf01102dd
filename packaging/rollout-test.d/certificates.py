"""Certificates of an authority, as a fleet has them, made with openssl."""

import subprocess

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]


def openssl(*arguments):
    """Runs openssl two days ago: a host whose clock is hours behind must not see certificates of its future."""
    subprocess.run(["faketime", "-f", "-2d", "openssl", *arguments], check=True, stdin=subprocess.DEVNULL,
                   capture_output=True)


class Authority:
    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.path, self.key = f"{folder}/{name}.pem", f"{folder}/{name}.key"
        self.list, self.database = f"{folder}/{name}.crl", f"{folder}/{name}.index"
        openssl("req", "-x509", *NEW_KEY, "-nodes", "-days", "15", "-subj", f"/CN={name}",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self.key, "-out", self.path)
        open(self.database, "w").close()
        with open(f"{folder}/{name}.crlnumber", "w") as file:
            file.write("01\n")
        with open(f"{folder}/{name}.conf", "w") as file:
            file.write(f"[ca]\ndefault_ca=x\n[x]\ndatabase={self.database}\ncrlnumber={folder}/{name}.crlnumber\n"
                       f"certificate={self.path}\nprivate_key={self.key}\ndefault_md=sha256\ndefault_crl_days=15\n")
        self.write_list()

    def write_list(self):
        openssl("ca", "-config", f"{self.folder}/{self.name}.conf", "-gencrl", "-out", self.list)
        # etcd reads DER.
        openssl("crl", "-in", self.list, "-outform", "DER", "-out", self.list)

    def issue(self, name, address):
        """A certificate for one machine. The gateway of etcd is a client of etcd, so servers need both uses."""
        base = f"{self.folder}/{name}"
        openssl("req", *NEW_KEY, "-nodes", "-subj", f"/CN={name}", "-keyout", base + ".key", "-out",
                base + ".csr")
        with open(base + ".ext", "w") as file:
            file.write(f"subjectAltName=IP:{address}\nextendedKeyUsage=serverAuth,clientAuth\n"
                       "keyUsage=digitalSignature,keyEncipherment\n")
        openssl("x509", "-req", "-in", base + ".csr", "-CA", self.path, "-CAkey", self.key, "-CAcreateserial", "-days",
                "15", "-extfile", base + ".ext", "-out", base + ".pem")
        return base + ".pem", base + ".key"

    def revoke(self, certificate):
        openssl("ca", "-config", f"{self.folder}/{self.name}.conf", "-revoke", certificate)
        self.write_list()
