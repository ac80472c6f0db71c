# The profile of Cargo, such as dev for a quick build.
CARGO_PROFILE = release

.PHONY: weft-cargo
weft-cargo:
	cd $(top_srcdir) && PHP='$(PHP_EXECUTABLE)' PHP_CONFIG='$(WEFT_PHP_CONFIG)' $(CARGO) build --locked --package weft-ext --profile $(CARGO_PROFILE) --target-dir '$(top_builddir)/target'

$(phplibdir)/weft.so: weft-cargo
	cp '$(top_builddir)/target/$(if $(filter dev,$(CARGO_PROFILE)),debug,$(CARGO_PROFILE))/libweft.so' $@.new
	strip --strip-debug $@.new
	mv $@.new $@
