"""Makes ``twistd pkgrepo`` known."""

from twisted.application.service import ServiceMaker

pkgrepo = ServiceMaker("pkgrepo", "pkgrepo.tap", "A package registry", "pkgrepo")
