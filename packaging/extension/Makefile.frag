# The profile of Cargo, such as dev for a quick build.
CARGO_PROFILE = release

# Files, so that `make install`, which runs as root, finds the library built and only copies it.
WEFT_SOURCES := $(shell find $(top_srcdir)/Cargo.toml $(top_srcdir)/Cargo.lock $(top_srcdir)/crates $(top_srcdir)/protos $(top_srcdir)/stubs -type f)

$(phplibdir)/weft.so: $(WEFT_SOURCES)
	cd $(top_srcdir) && PHP='$(PHP_EXECUTABLE)' PHP_CONFIG='$(WEFT_PHP_CONFIG)' $(CARGO) build --locked --package weft-ext --profile $(CARGO_PROFILE) --target-dir '$(top_builddir)/target'
	cp '$(top_builddir)/target/$(if $(filter dev,$(CARGO_PROFILE)),debug,$(CARGO_PROFILE))/libweft.so' $@.new
	strip --strip-debug $@.new
	mv $@.new $@
